package session

import (
	"slices"
	"strings"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
)

// demands are what a caller declared about a result: codes and a count within their bounds.
func (s *sanitiser) demands(in *event.Input) {
	fits := func(code int) bool { return code >= 0 && code <= MaxExitCode }
	if codes := in.AcceptedExitCodes; len(codes) > MaxAcceptedExitCodes || slices.ContainsFunc(codes, func(c int) bool { return !fits(c) }) {
		codes = slices.DeleteFunc(slices.Clone(codes), func(c int) bool { return !fits(c) })
		in.AcceptedExitCodes, s.changed = codes[:min(len(codes), MaxAcceptedExitCodes)], true
	}
	put(s, &in.MinTests, min(max(in.MinTests, 0), MaxMinTests))
}

func (s *sanitiser) scope(p **event.ValidationScope) {
	if *p == nil {
		return
	}
	v := **p
	s.atom(&v.Kind)
	s.atom(&v.Parser)
	opaque(s, &v.TargetID, &v.Scope)
	if v != **p {
		*p = &v
	}
}

func (s *sanitiser) validation(p **event.Validation) {
	if *p == nil {
		return
	}
	v, here := **p, sanitiser{}
	here.atom(&v.Kind)
	here.atom(&v.Parser)
	here.covered(&v.TargetID, TargetPrefix, TargetHexes)
	here.covered(&v.Scope, ScopePrefix, ScopeHexes)
	here.failures(&v.Failures)
	here.binding(&v.Bound)
	if here.changed {
		*p, s.changed = &v, true
	}
}

// Forms of what names a run's target and scope (VAL-03, VAL-22).
const (
	TargetPrefix = "target:"
	TargetHexes  = 24
	ScopePrefix  = "validation_scope:v1:"
	ScopeHexes   = 64
)

// covered is compared and shown: a name of our form stays, however random its digits look.
func (s *sanitiser) covered(p *string, prefix string, digits int) {
	if h, ok := strings.CutPrefix(*p, prefix); !ok || len(h) != digits || !hexadecimal(h) {
		s.text(p, MaxOpaqueBytes)
	}
}

func (s *sanitiser) failures(p *[]event.FailedCase) {
	if len(*p) > MaxFailureCases {
		*p, s.changed = (*p)[:MaxFailureCases], true
	}
	clean := func(f event.FailedCase) event.FailedCase {
		if f.Kind != event.FailureTest && f.Kind != event.FailureDiagnostic {
			f.Kind = event.FailureUnknown
		}
		f.Name, f.Line = redact.Text(f.Name, MaxFailureName), max(f.Line, 0)
		if f.File != "" && !fitPath(f.File, MaxFailureName) {
			f.File, _ = fittedPath(f.File, MaxFailureName)
		}
		return f
	}
	for i, f := range *p {
		if c := clean(f); c != f {
			*p, s.changed = slices.Clone(*p), true
			(*p)[i] = c
		}
	}
}

func (s *sanitiser) binding(p **event.Binding) {
	if *p == nil {
		return
	}
	b := **p
	for _, h := range []*string{&b.Commit, &b.Tree, &b.Output} {
		if !hexadecimal(*h) {
			*h = ""
		}
	}
	b.Reason = redact.Text(b.Reason, MaxAtomChars)
	if b != **p {
		*p, s.changed = &b, true
	}
}

// hexadecimal reports whether h is a hash in lowercase hex, or empty.
func hexadecimal(h string) bool {
	if len(h) > 64 {
		return false
	}
	return !slices.ContainsFunc([]byte(h), func(c byte) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

func (s *sanitiser) given(p **event.ContextResult) {
	if *p == nil || (*p).Items >= 0 && (*p).Failed >= 0 {
		return
	}
	g := **p
	g.Items, g.Failed = max(g.Items, 0), max(g.Failed, 0)
	*p, s.changed = &g, true
}

// shell keeps of a persistent shell's life what is bounded, and nothing without an id.
func (s *sanitiser) shell(p **event.ShellFacts) {
	if *p == nil {
		return
	}
	if !(*p).ID.Valid() {
		*p, s.changed = nil, true
		return
	}
	f := **p
	s.atom(&f.Action)
	s.atom(&f.State)
	s.atom(&f.Reason)
	if f != **p {
		*p = &f
	}
}

// moment is a time in the log's form, or nothing.
func (s *sanitiser) moment(p *string) {
	if _, err := time.Parse(event.TimeForm, *p); *p != "" && err != nil {
		put(s, p, "")
	}
}
