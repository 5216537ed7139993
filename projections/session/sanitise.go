package session

import (
	"slices"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
)

// What lies on disk may be of another program, so its bounds, its redaction and its path rules
// hold again for all that enters a View (RES-13): commits as they are folded, a Session's core
// and its carried state as they are read. A tail row holds what a fold gave, as its hash and the
// file's Shape prove. What this program writes stays as it is. Clean short texts cost a look at
// each byte.

// SanitiseVersion is of these rules and of redact's. A change that takes out more takes the next
// number: rows that were written before are then made again from the log.
const SanitiseVersion = 1

// badMode stands for a stored mode that is none; a Session that has it is discarded (RES-07).
const badMode = event.Mode("unknown")

// sanitised is the commit with its events sanitised; mostly it is the same.
func sanitised(c event.Commit) event.Commit {
	copied := false
	for i, e := range c.Events {
		se, ok := e.(event.SessionEvent)
		if !ok {
			continue
		}
		clean, changed := sanitise(se)
		if !changed {
			continue
		}
		if !copied { // others read the commit, too
			c.Events, copied = slices.Clone(c.Events), true
		}
		c.Events[i] = clean
	}
	return c
}

// sanitise gives an event within all bounds, and whether anything had to change.
func sanitise(e event.SessionEvent) (event.SessionEvent, bool) {
	var s sanitiser
	switch x := e.(type) {
	case event.SessionCreated:
		s.created(&x)
		e = pick(s.changed, e, x)
	case event.InstructionAccepted:
		s.instruction(&x)
		e = pick(s.changed, e, x)
	case event.ContextUpdated:
		s.context(&x.Context)
		s.context(&x.Previous)
		e = pick(s.changed, e, x)
	case event.InstructionsObserved:
		s.files(&x.Sources)
		e = pick(s.changed, e, x)
	case event.ToolCallStarted:
		s.started(&x)
		e = pick(s.changed, e, x)
	case event.ToolCallFinished:
		s.finished(&x)
		e = pick(s.changed, e, x)
	case event.ExecutionFinished:
		s.job(&x)
		e = pick(s.changed, e, x)
	case event.ExecutionReconciled:
		ident(&s, &x.Execution)
		s.effect(&x.Effect)
		e = pick(s.changed, e, x)
	case event.MessagePosted:
		s.posted(&x)
		e = pick(s.changed, e, x)
	case event.MessageResolved:
		s.resolved(&x)
		e = pick(s.changed, e, x)
	case event.MessageCompleted:
		s.completed(&x)
		e = pick(s.changed, e, x)
	case event.MessagesAcknowledged:
		s.acknowledged(&x)
		e = pick(s.changed, e, x)
	case event.SessionClosed, event.SessionRefBound, event.SessionCarried: // hold no text
	}
	return e, s.changed
}

// pick makes an interface of the new event only where it is needed.
func pick[T event.SessionEvent](changed bool, was event.SessionEvent, is T) event.SessionEvent {
	if changed {
		return is
	}
	return was
}

// sanitiser notes whether it had to change anything.
type sanitiser struct{ changed bool }

func put[T comparable](s *sanitiser, p *T, v T) {
	if *p != v {
		*p, s.changed = v, true
	}
}

// text is free text of at most so many characters.
func (s *sanitiser) text(p *string, chars int) { put(s, p, redact.Text(*p, chars)) }

// atom is a word of a closed set, or nearly.
func (s *sanitiser) atom(p *string) { s.text(p, MaxAtomChars) }

// opaque is compared and never shown, and cut it would be another.
func opaque[T ~string](s *sanitiser, list ...*T) {
	for _, p := range list {
		if len(*p) > MaxOpaqueBytes {
			put(s, p, "")
		}
	}
}

// ident is one of ours, or at least a short word.
func ident[T ~string](s *sanitiser, p *T) {
	if !minted(string(*p)) {
		put(s, p, T(redact.Text(string(*p), MaxAtomChars)))
	}
}

// minted reports whether s looks like an id of this program (wc_exec_…).
func minted(s string) bool {
	i := strings.LastIndexByte(s, '_')
	if i < 0 || len(s) != i+33 || !strings.HasPrefix(s, "wc_") || i > 12 {
		return s == ""
	}
	for _, c := range []byte(s[i+1:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// fitPath reports whether p is a project-relative path of at most so many characters as it is
// stored; a cut may have left the slash of its end.
func fitPath(p string, chars int) bool {
	clean, ok := redact.Path(p)
	return ok && (clean == p || len(p) == len(clean)+1 && p[:len(clean)] == clean && p[len(clean)] == '/') && redact.Text(p, chars) == p
}

// fittedPath gives p in the form that fits; false: there is none.
func fittedPath(p string, chars int) (string, bool) {
	for range 4 { // a cut can make a part look like a secret
		if fitPath(p, chars) {
			return p, true
		}
		clean, ok := redact.Path(p)
		if !ok {
			return "", false
		}
		p = redact.Text(clean, chars)
	}
	return "", false
}

// paths are project-relative; what is none goes, though a list never becomes an empty one: it
// tells that there was something.
func (s *sanitiser) paths(p *[]string, most, chars int) {
	in := *p
	if len(in) > most {
		in, s.changed = in[:most], true
	}
	if !slices.ContainsFunc(in, func(x string) bool { return !fitPath(x, chars) }) {
		*p = in
		return
	}
	s.changed = true
	out := make([]string, 0, len(in))
	for _, x := range in {
		if x, ok := fittedPath(x, chars); ok {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		out = append(out, redact.Mark)
	}
	*p = out
}

func (s *sanitiser) atoms(p *[]string) {
	if len(*p) > MaxInputItems {
		*p, s.changed = (*p)[:MaxInputItems], true
	}
	for i, x := range *p {
		if t := redact.Text(x, MaxAtomChars); t != x {
			*p, s.changed = slices.Clone(*p), true
			(*p)[i] = t
		}
	}
}

func validMode(m event.Mode) bool { return m == event.ModeNormal || m == event.ModeReadOnly }

// mode may be absent where others say it.
func (s *sanitiser) mode(p *event.Mode) {
	if *p != "" && !validMode(*p) {
		put(s, p, badMode)
	}
}

// guarded are the guards that are stored, and those that the mode demands at least.
func guarded(m event.Mode, g event.Guards) event.Guards {
	ro := m == event.ModeReadOnly
	return event.Guards{DenyWrite: g.DenyWrite || ro, DenyShell: g.DenyShell || ro}
}

// context drops each field that is not valid, and keeps the others (RES-10).
func (s *sanitiser) context(c *event.ExecutionContext) {
	if redact.Text(c.Resource, MaxResourceChars) != c.Resource {
		put(s, &c.Resource, "")
	}
	switch {
	case c.DefaultCwd == "":
	case c.Resource != "": // a directory there is not one of the Project (EXE-07)
		if len(c.DefaultCwd) > MaxRemoteCwdBytes || redact.Text(c.DefaultCwd, MaxRemoteCwdBytes) != c.DefaultCwd {
			put(s, &c.DefaultCwd, "")
		}
	default:
		if clean, ok := redact.Path(c.DefaultCwd); !ok || clean != c.DefaultCwd {
			put(s, &c.DefaultCwd, "")
		}
	}
	if c.DefaultShell != "sh" && c.DefaultShell != "bash" {
		put(s, &c.DefaultShell, "")
	}
}

func (s *sanitiser) files(p *[]event.InstructionFile) {
	fits := func(f event.InstructionFile) bool {
		clean, ok := redact.Path(f.Path)
		return ok && clean == f.Path && len(f.Path) <= MaxInstructionPath && len(f.SHA256) <= 64 && f.Bytes >= 0
	}
	out := *p
	if slices.ContainsFunc(out, func(f event.InstructionFile) bool { return !fits(f) }) {
		out = slices.DeleteFunc(slices.Clone(out), func(f event.InstructionFile) bool { return !fits(f) })
	}
	out = out[:min(len(out), MaxInstructionFiles)]
	s.changed = s.changed || len(out) != len(*p)
	*p = out
}

func (s *sanitiser) created(e *event.SessionCreated) {
	opaque(s, &e.Nonce, &e.Authority, &e.Principal, &e.Root)
	opaque(s, &e.Project.Client)
	opaque(s, &e.Project.Project)
	s.text(&e.Title, MaxTitleChars)
	s.mode(&e.Mode)
	s.context(&e.Context)
}

func (s *sanitiser) instruction(e *event.InstructionAccepted) {
	s.text(&e.Text, MaxInstructionChars)
	s.atom(&e.Continuation)
	s.atom(&e.Transport)
	s.mode(&e.Mode)
	s.mode(&e.RequestedMode)
	s.mode(&e.PreviousMode)
}

func (s *sanitiser) started(e *event.ToolCallStarted) {
	ident(s, &e.Call)
	s.text(&e.Tool, MaxToolChars)
	s.atom(&e.Transport)
	s.role(&e.Role)
	s.input(&e.Input)
	if len(e.At) > len(event.TimeForm) {
		put(s, &e.At, "")
	}
	s.scope(&e.Validates)
	if e.Execution != nil {
		x := *e.Execution
		s.execution(&x)
		if x != *e.Execution {
			e.Execution = &x
		}
	}
}

func (s *sanitiser) role(p *event.Role) {
	if *p != "" && *p != event.RoleRecorder {
		put(s, p, event.RoleBusiness)
	}
}

func (s *sanitiser) execution(x *event.Execution) {
	ident(s, &x.ID)
	opaque(s, &x.Client)
	opaque(s, &x.Instance)
	opaque(s, &x.Root, &x.Generation, &x.Boot, &x.Digest, &x.Op)
}

// input are the bounds of EVT-17.
func (s *sanitiser) input(in *event.Input) {
	for _, p := range []*string{&in.Executable, &in.Language, &in.Shell, &in.Purpose, &in.Expectation} {
		s.atom(p)
	}
	ident(s, &in.Target)
	if in.Cwd != "" {
		cwd, _ := fittedPath(in.Cwd, MaxAtomChars)
		put(s, &in.Cwd, cwd)
	}
	s.paths(&in.Paths, MaxInputItems, MaxAtomChars)
	s.atoms(&in.Packages)
	s.atoms(&in.Features)
	s.atoms(&in.Flags)
	s.demands(in)
}

func (s *sanitiser) finished(e *event.ToolCallFinished) {
	ident(s, &e.Call)
	ident(s, &e.Execution)
	ident(s, &e.Replays)
	s.role(&e.Role)
	s.text(&e.Tool, MaxToolChars)
	for _, p := range []*string{&e.Transport, &e.Status, &e.ErrorKind, &e.FailureKind, &e.Expectation} {
		s.atom(p)
	}
	s.text(&e.ErrorSummary, MaxTitleChars)
	s.paths(&e.Changed, MaxChangedPaths, redact.MaxPathBytes)
	s.paths(&e.Observed, MaxObservedPaths, redact.MaxPathBytes)
	s.effect(&e.Effect)
	s.validation(&e.Validation)
	s.given(&e.Context)
	s.shell(&e.Shell)
}

func (s *sanitiser) job(e *event.ExecutionFinished) {
	ident(s, &e.Execution)
	ident(s, &e.Call)
	s.text(&e.Tool, MaxToolChars)
	s.atom(&e.FailureKind)
	s.atom(&e.Expectation)
	s.effect(&e.Effect)
	s.validation(&e.Validation)
	s.moment(&e.FinishedAt)
}

// effect: a state that is none proves nothing.
func (s *sanitiser) effect(e *event.Effect) {
	switch e.State {
	case "", event.NotStarted, event.Started, event.OutcomeUnknown, event.Completed, event.Cancelled, event.TimedOut:
	default:
		put(s, &e.State, event.OutcomeUnknown)
	}
}

// sanitised is the core that a row or carried state gives.
func (c Core) sanitised() Core {
	var s sanitiser
	s.text(&c.Title, MaxTitleChars)
	s.context(&c.Context)
	s.files(&c.Instructions)
	if c.Exists() {
		c.Guards = guarded(c.Mode, c.Guards)
	}
	if c.Task != nil {
		s.text(&c.Task.Text, MaxExcerptChars)
	}
	for id, o := range c.Open {
		var here sanitiser
		if here.started(&o.Started); here.changed {
			c.Open[id] = o
		}
	}
	for id, j := range c.Jobs {
		var here sanitiser
		here.text(&j.Tool, MaxToolChars)
		here.execution(&j.Execution)
		here.scope(&j.Validates)
		if here.input(&j.Input); here.changed {
			c.Jobs[id] = j
		}
	}
	c.Ended = c.Ended[max(0, len(c.Ended)-MaxEnded):]
	for i := range c.Ended {
		s.text(&c.Ended[i].Tool, MaxToolChars)
		s.atom(&c.Ended[i].FailureKind)
	}
	if n := len(c.Unknown) - MaxUnknown; n > 0 {
		c.Unknown, c.UnknownDropped = c.Unknown[n:], c.UnknownDropped+n
	}
	for i := range c.Unknown {
		s.text(&c.Unknown[i].Tool, MaxToolChars)
	}
	return c
}
