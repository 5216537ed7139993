package call

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/projections/session"
)

// recordTimeout bounds how long an answer waits for its own evidence.
const recordTimeout = 30 * time.Second

// sessionHint tells a model once per answer how to keep evidence.
const sessionHint = "not recorded: pass the session_id that work_on_project gave to keep this call in the Session"

// records reports whether this call leaves a business pair (rulings 1 and 3).
func (c *Call) records() bool {
	return c.Session != nil && c.req.Spec.Plane == PlaneProject && c.Session.Lifecycle == session.Active
}

// finish records the end and builds the answer. The answer waits for the record; where the
// record fails, the caller is told so and what was done.
func (c *Call) finish(ctx context.Context, res Result, err error) (Response, error) {
	if err != nil {
		err = fault.As(err)
	}
	var id event.EventID
	if len(c.legs) > 0 && !c.refusedArguments(err) {
		var rerr error
		if id, rerr = c.end(ctx, res, fault.As(err)); rerr != nil {
			return Response{}, c.refuse(c.unrecorded(rerr, res, fault.As(err)), id)
		}
	}
	c.settleAfter(ctx, res, err)
	if err != nil {
		return Response{}, c.refuse(fault.As(err), id)
	}
	return c.respond(ctx, res, id)
}

// refusedArguments reports a refusal of what was asked for before any effect: a path that
// leads out, a member that is missing. Like the schema's own refusals it leaves no pair.
func (c *Call) refusedArguments(err error) bool {
	k := fault.KindOf(err)
	return c.execution == "" && !c.opened() && (k == fault.InvalidArguments || k == fault.InvalidPath)
}

// refuse adds to a refusal what the call has left, and what came of the mutations with it.
func (c *Call) refuse(f *fault.Error, id event.EventID) error {
	if id != "" {
		f.With("session_recorded", true).With("session_event_id", id)
	}
	if c.control != nil {
		f.With("control", c.control)
	}
	return f
}

// unrecorded says that the evidence is missing although the effect, or a decision of the call's
// own, stands.
func (c *Call) unrecorded(rerr error, res Result, err *fault.Error) *fault.Error {
	f := *fault.As(rerr)
	f.StateChanged = f.StateChanged || c.mutated || res.Facts.Effect.StateChanged || (err != nil && err.StateChanged)
	f.CommandStarted = f.CommandStarted || res.Facts.Effect.CommandStarted || (err != nil && err.CommandStarted)
	f.Message += "; the call's end could not be recorded"
	return &f
}

func (c *Call) respond(ctx context.Context, res Result, id event.EventID) (Response, error) {
	out, err := marshal(res.Output)
	if err != nil {
		return Response{}, fault.Wrap(err, fault.Internal, "the result could not be encoded")
	}
	switch {
	case id != "":
		out = splice(out, "session_recorded", true)
		out = splice(out, "session_event_id", id)
	case c.req.Spec.Plane == PlaneProject:
		out = splice(out, "session_recorded", false)
		if c.Session == nil && c.Recorder == nil {
			out = splice(out, "session_hint", sessionHint)
		}
	}
	if c.control != nil {
		out = splice(out, "control", c.control)
	}
	for _, a := range c.additions(ctx, res.Failed) {
		out = splice(out, a.Name, a.Value)
	}
	return Response{Success: !res.Failed, Output: out, Error: res.Error}, nil
}

func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if v == nil {
		v = struct{}{}
	}
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// splice adds one member at the end of a JSON object.
func splice(obj json.RawMessage, name string, v any) json.RawMessage {
	if len(obj) < 2 || obj[len(obj)-1] != '}' {
		return obj
	}
	enc, err := marshal(v)
	if err != nil {
		return obj
	}
	out := append(json.RawMessage{}, obj[:len(obj)-1]...)
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(out, '"')
	out = append(out, name...)
	out = append(out, `":`...)
	out = append(out, enc...)
	return append(out, '}')
}

func (c *Call) startEvent(role event.Role, x *event.Execution, now time.Time) event.ToolCallStarted {
	e := event.ToolCallStarted{Call: c.callID(role), Role: role, Tool: c.req.Spec.Name, Transport: c.Transport, Execution: x}
	if c.req.Spec.Evidence != nil {
		e.Input = BoundInput(c.req.Spec.Evidence(c.Args))
	}
	if x != nil {
		e.Validates = c.validates
	}
	if began := c.Started.UTC().Truncate(time.Millisecond); began.Before(now) && x == nil {
		e.At = event.FormatTime(began)
	}
	return e
}

func (c *Call) finishEvent(role event.Role, res Result, f *fault.Error, now time.Time) event.ToolCallFinished {
	e := event.ToolCallFinished{Call: c.callID(role), Role: role, Tool: c.req.Spec.Name,
		Transport: c.Transport, DurationMS: max(0, now.Sub(c.Started).Milliseconds()), Execution: c.execution}
	if c.replayed != "" {
		return c.repeated(e)
	}
	return c.classified(finishFrom(e, res.Facts, res.Failed, res.Error, f))
}

// finishFrom fills a finish event from what the tool and its fault say.
func finishFrom(e event.ToolCallFinished, facts Facts, failed bool, sentence string, f *fault.Error) event.ToolCallFinished {
	e.Status = event.StatusSucceeded
	e.ExitCode, e.FailureKind, e.ErrorKind = facts.ExitCode, facts.FailureKind, facts.ErrorKind
	e.Changed = boundPaths(facts.Changed, MaxChangedPaths)
	e.Observed = boundPaths(facts.Observed, MaxObservedPaths)
	e.Effect, e.Validation, e.Promoted, e.Context = facts.Effect, facts.Validation, facts.Promoted, facts.Context
	e.Shell = facts.Shell
	if facts.Execution != "" {
		e.Execution = facts.Execution
	}
	if e.Expectation = facts.Expectation; e.Expectation == "" {
		e.Expectation = "none"
	}
	summary := facts.ErrorSummary
	if failed {
		e.Status = event.StatusFailed
		if summary == "" {
			summary = sentence
		}
	}
	if f != nil {
		e.Status, e.ErrorKind, e.FailureKind = event.StatusFailed, string(f.Kind), f.FailureKind
		e.Effect.StateChanged = e.Effect.StateChanged || f.StateChanged
		e.Effect.CommandStarted = e.Effect.CommandStarted || f.CommandStarted
		if f.ExecutionState != "" {
			e.Effect.State = event.ExecutionState(f.ExecutionState)
		}
		summary = f.Message
	}
	e.ErrorSummary = redact.Text(summary, MaxErrorSummary)
	return e
}

// BoundInput applies the bounds of EVT-17 to evidence, and redaction as the second net.
func BoundInput(in event.Input) event.Input {
	for _, s := range []*string{&in.Executable, &in.Language, &in.Shell, &in.Purpose, &in.Target, &in.Expectation} {
		*s = redact.Text(*s, MaxInputString)
	}
	if in.Cwd != "" {
		if p, ok := redact.Path(in.Cwd); ok {
			in.Cwd = redact.Text(p, MaxInputString)
		} else {
			in.Cwd = ""
		}
	}
	if len(in.Paths) > 0 {
		if in.PathCount == 0 {
			in.PathCount = len(in.Paths)
		}
		in.Paths = boundStrings(boundPaths(in.Paths, MaxInputItems))
	}
	for _, list := range []*[]string{&in.Packages, &in.Features, &in.Flags} {
		bounded := boundStrings(*list)
		in.Partial = in.Partial || !slices.Equal(bounded, *list)
		*list = bounded
	}
	in.AcceptedExitCodes = in.AcceptedExitCodes[:min(len(in.AcceptedExitCodes), session.MaxAcceptedExitCodes)]
	return in
}

func boundStrings(list []string) []string {
	if len(list) > MaxInputItems {
		list = list[:MaxInputItems]
	}
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, redact.Text(s, MaxInputString))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// boundPaths keeps the first limit distinct paths that are project-relative (EVT-25, EVT-26).
func boundPaths(paths []string, limit int) []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range paths {
		clean, ok := redact.Path(p)
		if !ok || seen[clean] || len(out) == limit {
			continue
		}
		seen[clean] = true
		out = append(out, clean)
	}
	return out
}
