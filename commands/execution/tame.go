package execution

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Bounds of what a Runner says of an end, whatever it is (faults.md 4): an honest one stays far
// below. Texts are counted in bytes.
const (
	maxStream   = 256 << 10
	maxSentence = 2000
	maxDetails  = 256 << 10
	maxAlive    = 64
	maxTestText = 4000
)

var kindForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// tame cuts and cleans an end before anything of it is kept or shown.
func tame(r wire.Result) wire.Result {
	r.Fault = tameFault(r.Fault)
	r.DurationMS = max(r.DurationMS, 0)
	if _, err := time.Parse(event.TimeForm, r.EndedAt); err != nil {
		r.EndedAt = ""
	}
	if r.Process != nil {
		p := *r.Process
		tameProcess(&p)
		r.Process = &p
	}
	return r
}

// query asks a Runner's journal about one id. What it says of an end is tamed like the end itself,
// since it is kept and shown as well.
func (f *Fleet) query(ctx context.Context, c event.ClientID, id event.ExecutionID) (wire.QueryReply, error) {
	q, err := f.link.Query(ctx, c, wire.Query{ID: id})
	if r := q.Result; r != nil {
		if q.Result = nil; ending(r.State) {
			end := tame(*r)
			q.Result = &end
		}
	}
	return q, err
}

// ending reports that a state is one in which an execution ends.
func ending(s wire.JournalState) bool {
	switch s {
	case wire.JTerminal, wire.JSettled, wire.JStartFailed, wire.JNever, wire.JRefused, wire.JLost:
		return true
	case wire.JAccepted, wire.JStarting, wire.JRunning, wire.JAbsent:
	}
	return false
}

func tameProcess(p *wire.ProcessOutcome) {
	p.Signal, p.RemoteProcess = clip(p.Signal), clip(p.RemoteProcess)
	p.DurationMS = max(p.DurationMS, 0)
	for _, s := range []*wire.Stream{&p.Stdout, &p.Stderr} {
		if len(s.Text) > maxStream {
			s.Text, s.Truncated = tail(s.Text, maxStream), true
		}
		s.Text = strings.ToValidUTF8(s.Text, "\uFFFD")
		s.Bytes, s.DroppedBytes = max(s.Bytes, 0), max(s.DroppedBytes, 0)
	}
	alive := p.LeftoverAlive[:min(len(p.LeftoverAlive), maxAlive)]
	p.LeftoverAlive = nil
	for _, name := range alive {
		p.LeftoverAlive = append(p.LeftoverAlive, clip(name))
	}
	if p.Tests != nil {
		t := *p.Tests
		tameTests(&t)
		p.Tests = &t
	}
}

func tameTests(t *wire.TestReport) {
	t.Parser = clip(t.Parser)
	for _, n := range []*int{&t.Version, &t.Run, &t.Passed, &t.Failed, &t.Skipped} {
		*n = max(*n, 0)
	}
	failed, diagnostics := t.FailedTests, t.Diagnostics
	t.FailedTests, t.Diagnostics = nil, nil
	for _, f := range failed[:min(len(failed), wire.MaxFailedTests)] {
		t.FailedTests = append(t.FailedTests, wire.FailedTest{Name: head(f.Name, maxTestText), Package: head(f.Package, maxTestText),
			File: head(f.File, maxTestText), Line: max(f.Line, 0), Message: head(f.Message, maxTestText)})
	}
	for _, d := range diagnostics[:min(len(diagnostics), wire.MaxDiagnostics)] {
		t.Diagnostics = append(t.Diagnostics, wire.Diagnostic{Kind: clip(d.Kind), File: head(d.File, maxTestText), Line: max(d.Line, 0),
			Message: head(d.Message, maxTestText)})
	}
}

// tameFault keeps a fault that has the form of one.
func tameFault(f *fault.Error) *fault.Error {
	if f == nil {
		return nil
	}
	out := fault.New(f.Kind, "%s", head(f.Message, maxSentence))
	if !kindForm.MatchString(string(f.Kind)) {
		out = fault.New(fault.RunnerRefused, "the Runner answered with an error that has no form")
	}
	out.Next, out.Field, out.StateChanged, out.CommandStarted = head(f.Next, maxSentence), clip(f.Field), f.StateChanged, f.CommandStarted
	for _, w := range []struct {
		to   *string
		from string
	}{{&out.Reason, f.Reason}, {&out.FailureKind, f.FailureKind}, {&out.ExecutionState, f.ExecutionState}} {
		if kindForm.MatchString(w.from) {
			*w.to = w.from
		}
	}
	switch f.Recovery {
	case fault.RetrySame, fault.ReRead, fault.FixArguments, fault.None:
		out.Recovery = f.Recovery
	}
	if b, err := json.Marshal(f.Details); err == nil && len(b) <= maxDetails {
		out.Details = f.Details
	}
	return out
}

// head is the beginning of a text, valid and without control characters but line ends and tabs.
func head(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if r, n := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && n == 1 {
			s = s[:len(s)-1]
		}
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// tail is the end of a text, from the beginning of a character.
func tail(s string, limit int) string {
	s = s[len(s)-limit:]
	for i := 0; i < len(s) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return s
}
