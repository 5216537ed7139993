package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// ExecuteIn is the input of execute_session_shell.
type ExecuteIn struct {
	Project        string `json:"project"`
	SessionID      string `json:"session_id"`
	ShellID        string `json:"shell_id"`
	Command        string `json:"command"`
	TimeoutSecs    int    `json:"timeout_secs,omitempty"`
	MaxOutputChars int    `json:"max_output_chars,omitempty"`
	Purpose        string `json:"purpose,omitempty"`
	Expectation    string `json:"result_expectation,omitempty"`
}

// ExecuteOut is its output.
type ExecuteOut struct {
	ExecutionID      event.ExecutionID    `json:"execution_id"`
	ShellID          event.ShellID        `json:"shell_id"`
	ShellState       wire.ShellState      `json:"shell_state"`
	Reason           *string              `json:"close_reason"`
	State            event.ExecutionState `json:"execution_state"`
	CommandStarted   bool                 `json:"command_started"`
	CommandCompleted bool                 `json:"command_completed"`
	ExitCode         *int                 `json:"exit_code"`
	DurationMS       int64                `json:"duration_ms"`
	EffectiveTimeout int                  `json:"effective_timeout_secs"`
	TimedOut         bool                 `json:"timed_out"`
	MaxOutputChars   int                  `json:"max_output_chars"`
	Stdout           string               `json:"stdout"`
	StdoutBytes      int64                `json:"stdout_bytes"`
	StdoutDropped    int64                `json:"stdout_dropped_bytes"`
	StdoutTruncated  bool                 `json:"stdout_truncated"`
	Stderr           string               `json:"stderr"`
	StderrBytes      int64                `json:"stderr_bytes"`
	StderrDropped    int64                `json:"stderr_dropped_bytes"`
	StderrTruncated  bool                 `json:"stderr_truncated"`
	Expectation      struct {
		Declared *string `json:"declared"`
		Result   string  `json:"result"`
	} `json:"expectation"`
	FailureKind string `json:"failure_kind,omitempty"`
}

// Execute runs one command in an open shell and waits for its end. It never becomes a Job
// (SHL-27).
var Execute = call.Spec{
	Name: "execute_session_shell", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: ExecuteIn{}, Evidence: executeEvidence, Expects: true, Run: execute,
}

func executeEvidence(args json.RawMessage) event.Input {
	var in ExecuteIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Target: targetOf(in.ShellID), CommandBytes: len(in.Command), TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose,
		Expectation: in.Expectation}
}

// targetOf keeps nothing that was not minted.
func targetOf(shellID string) string {
	if event.ShellID(shellID).Valid() {
		return shellID
	}
	return ""
}

func timeoutOf(secs int) int {
	if secs == 0 {
		return DefaultTimeoutSecs
	}
	return secs
}

func execute(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ExecuteIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needs(c, wire.OpShellExecute); err != nil {
		return call.Result{}, err
	}
	if strings.ContainsRune(in.Command, 0) {
		return call.Result{}, fault.New(fault.InvalidArguments, "command holds a NUL byte").WithField("command").WithReason("nul").
			WithNext("leave the NUL byte out, or write it by an escape of the shell")
	}
	at, err := shellAt(c, in.ShellID)
	if err != nil {
		return call.Result{}, err
	}
	chars := min(max(in.MaxOutputChars, 0), MaxOutputChars)
	if chars == 0 {
		chars = DefaultOutputChars
	}
	secs := timeoutOf(in.TimeoutSecs)
	o, err := c.Effect(ctx, wire.OpShellExecute, wire.ShellExecuteIn{ShellAt: at, Command: in.Command, Chars: chars},
		call.EffectOptions{Timeout: time.Duration(secs) * time.Second, Facts: executeFacts})
	if err != nil {
		return call.Result{}, lost(c, at.ID, err)
	}
	r, err := read[wire.ShellExecuteOut](o.Result)
	if err != nil {
		return call.Result{}, err
	}
	facts := executeFacts(*o.Result)
	facts.Execution = c.Execution()
	out := outputOf(c, r, facts, secs, chars)
	if r.Reset && facts.FailureKind == string(fault.ShellResetRequired) {
		return call.Result{Facts: facts}, reset(out, facts)
	}
	res := call.Result{Output: out, Facts: facts}
	if facts.FailureKind != "" {
		res.Failed, res.Error = true, sentence(r, secs)
	}
	return res, nil
}

func shellAt(c *call.Call, id string) (wire.ShellAt, error) {
	at := wire.ShellAt{Session: c.Session.ID, ID: event.ShellID(id)}
	if !at.ID.Valid() {
		f := fault.New(fault.ShellNotFound, "this names no persistent shell").WithField("shell_id").WithNext("use the shell_id that open_session_shell gave")
		f.Recovery, f.ExecutionState = fault.FixArguments, string(event.NotStarted)
		return at, f
	}
	return at, nil
}

// executeFacts is what the end of a command proves, at once or late.
func executeFacts(r wire.Result) call.Facts {
	f := call.FactsOf(r)
	out, err := read[wire.ShellExecuteOut](&r)
	if err != nil {
		return f
	}
	f.Shell = factsOf(actionExecute, out.Shell)
	f.ExitCode, f.Effect.CommandStarted, f.Effect.CommandCompleted = out.ExitCode, true, out.Completed
	switch {
	case out.TimedOut:
		f.Effect.State, f.FailureKind = event.TimedOut, "timed_out"
	case out.Cancelled:
		f.Effect.State, f.FailureKind = event.Cancelled, "cancelled"
	case out.Exited:
		f.FailureKind = string(fault.ShellProcessExited)
		if !out.Completed {
			f.Effect.State = event.OutcomeUnknown
		}
	case out.Reset && out.Shell.State == wire.ShellClosed: // somebody ended the shell meanwhile
		f.Effect.State, f.FailureKind = event.Cancelled, "shell_closed"
	case out.Reset:
		f.Effect.State = event.OutcomeUnknown
	case out.ExitCode != nil && *out.ExitCode != 0:
		f.FailureKind = evidence.FailExit
	}
	if out.Reset && out.Shell.State != wire.ShellClosed {
		f.FailureKind = string(fault.ShellResetRequired)
	}
	return f
}

func outputOf(c *call.Call, r wire.ShellExecuteOut, f call.Facts, secs, chars int) ExecuteOut {
	v := viewOf(c, r.Shell)
	out := ExecuteOut{ExecutionID: c.Execution(), ShellID: v.ShellID, ShellState: v.State, Reason: v.Reason, State: f.Effect.State,
		CommandStarted: true, CommandCompleted: r.Completed, ExitCode: r.ExitCode, DurationMS: r.DurationMS, EffectiveTimeout: secs, TimedOut: r.TimedOut,
		MaxOutputChars: chars,
		Stdout:         r.Stdout.Text, StdoutBytes: r.Stdout.Bytes, StdoutDropped: r.Stdout.DroppedBytes, StdoutTruncated: r.Stdout.Truncated,
		Stderr: r.Stderr.Text, StderrBytes: r.Stderr.Bytes, StderrDropped: r.Stderr.DroppedBytes, StderrTruncated: r.Stderr.Truncated,
		FailureKind: f.FailureKind}
	declared := c.Evidence()
	out.Expectation.Result = evidence.Classify(declared, evidence.End{State: f.Effect.State, Completed: f.Effect.CommandCompleted, ExitCode: f.ExitCode,
		FailureKind: f.FailureKind})
	if declared.Expectation != "" {
		out.Expectation.Declared = &declared.Expectation
	}
	return out
}

// reset is the refusal of all that follows: the shell could not be brought back from the command
// (SHL-26). What was printed until then comes with it.
func reset(out ExecuteOut, facts call.Facts) *fault.Error {
	text := "the way to the persistent shell was lost during the command; the shell was ended"
	if out.TimedOut {
		text = "the command did not end at its limit, and the persistent shell could not be brought back from it; the shell was ended"
	}
	f := fault.New(fault.ShellResetRequired, "%s", text).WithNext("open another with open_session_shell; it begins afresh")
	f.CommandStarted, f.ExecutionState, f.FailureKind = true, string(facts.Effect.State), facts.FailureKind
	f.Recovery = fault.None
	if out.Reason != nil {
		f.Reason = *out.Reason
	}
	f.With("shell_id", out.ShellID).With("shell_state", out.ShellState).With("execution_id", out.ExecutionID)
	f.With("stdout", out.Stdout).With("stdout_truncated", out.StdoutTruncated).With("stderr", out.Stderr).With("stderr_truncated", out.StderrTruncated)
	return f
}

// lost turns the refusal of a shell that lived in an earlier life into what it is.
func lost(c *call.Call, id event.ShellID, err error) error {
	f := fault.As(err)
	if f.Kind != fault.ShellNotFound || f.Reason != "" {
		return err
	}
	if last, _, found := lived(c, id); found && last.State == string(wire.ShellRunning) {
		f = fault.New(fault.ShellResetRequired, "this persistent shell ended with the Runner or the server that it was opened in").
			WithReason(wire.ShellByRestart).WithNext("open another with open_session_shell; it begins afresh")
		f.ExecutionState = string(event.NotStarted)
		return f.With("shell_state", wire.ShellLost)
	}
	return err
}

func sentence(r wire.ShellExecuteOut, secs int) string {
	switch {
	case r.TimedOut:
		return fmt.Sprintf("the command was interrupted at its limit of %d s; the shell goes on", secs)
	case r.Cancelled:
		return "the command was cancelled"
	case r.Exited:
		return "the persistent shell exited"
	case r.Reset:
		return "the persistent shell was closed while the command ran"
	case r.ExitCode != nil:
		return fmt.Sprintf("the command ended with exit status %d", *r.ExitCode)
	}
	return "the command failed"
}
