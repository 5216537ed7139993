// Package run holds the tools that run commands and watch Jobs, one file each. Command text,
// arguments, stdin and output pass through and are never stored.
package run

import (
	"context"
	"fmt"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// Output is what every run tells (shapes.md 4).
type Output struct {
	ExecutionID      event.ExecutionID    `json:"execution_id"`
	State            event.ExecutionState `json:"execution_state"`
	CommandStarted   bool                 `json:"command_started"`
	CommandCompleted bool                 `json:"command_completed"`
	ExitCode         *int                 `json:"exit_code"`
	Signal           *string              `json:"signal"`
	DurationMS       int64                `json:"duration_ms"`
	EffectiveTimeout int                  `json:"effective_timeout_secs"`
	TimedOut         bool                 `json:"timed_out"`
	Stdout           string               `json:"stdout"`
	StdoutBytes      int64                `json:"stdout_bytes"`
	StdoutDropped    int64                `json:"stdout_dropped_bytes"`
	StdoutTruncated  bool                 `json:"stdout_truncated"`
	Stderr           string               `json:"stderr"`
	StderrBytes      int64                `json:"stderr_bytes"`
	StderrDropped    int64                `json:"stderr_dropped_bytes"`
	StderrTruncated  bool                 `json:"stderr_truncated"`
	LeftoverKilled   bool                 `json:"leftover_killed"`
	LeftoverAlive    []string             `json:"leftover_alive,omitempty"`
	RemoteProcess    string               `json:"remote_process,omitempty"` // unknown: something may live on a named resource
	Promoted         bool                 `json:"promoted_to_job"`
	Replayed         bool                 `json:"replayed,omitempty"` // of an earlier call with the same idempotency_key
	JobID            *event.ExecutionID   `json:"job_id"`
	ObservationToken *string              `json:"observation_token"`
	InputState
	Expectation Expectation `json:"expectation"`
	FailureKind string      `json:"failure_kind,omitempty"`
}

// InputState tells of a run on a terminal that what runs there waits for input, with the last line
// that it shows. It rests on what the kernel says its processes do, never on what they print; both
// are absent for any other.
type InputState struct {
	WaitingForInput bool   `json:"waiting_for_input,omitempty"`
	LastLine        string `json:"last_line,omitempty"`
}

func inputState(v wire.JobView) InputState { return InputState{v.WaitsForInput, v.LastLine} }

// Expectation is what the caller declared about the result, null where it declared nothing,
// and how the end stands to it (EVT-19). It changes nothing else of the answer (EXE-33).
type Expectation struct {
	Declared *string `json:"declared"`
	Result   string  `json:"result"`
}

// Expect fills in the expectation of a run that ended or became a Job.
func (out *Output) Expect(declared event.Input, f call.Facts) {
	out.Expectation = Expectation{Result: evidence.Classify(declared, evidence.End{State: f.Effect.State,
		Completed: f.Effect.CommandCompleted, ExitCode: f.ExitCode, ErrorKind: f.ErrorKind, FailureKind: f.FailureKind, Promoted: f.Promoted})}
	if declared.Expectation != "" {
		out.Expectation.Declared = &declared.Expectation
	}
}

// FromOutcome builds the output, the failure flag and its sentence, and the facts.
func FromOutcome(id event.ExecutionID, o call.Outcome, timeoutSecs int) (Output, call.Result) {
	out := Output{ExecutionID: id, EffectiveTimeout: timeoutSecs, Expectation: Expectation{Result: event.ExpectationNone}}
	if o.Promoted {
		out.State, out.CommandStarted, out.Promoted, out.JobID = event.Started, true, true, &id
		return out, call.Result{Facts: call.Facts{Promoted: true, Execution: id,
			Effect: event.Effect{CommandStarted: true, State: event.Started}}}
	}
	facts := call.FactsOf(*o.Result)
	facts.Execution = id
	p := o.Result.Process
	if p == nil {
		p = &wire.ProcessOutcome{}
	}
	out.State, out.CommandStarted, out.CommandCompleted = facts.Effect.State, p.Started, p.Completed
	out.ExitCode, out.DurationMS, out.TimedOut = p.ExitCode, p.DurationMS, p.TimedOut
	if p.Signal != "" {
		out.Signal = &p.Signal
	}
	out.streams(*p)
	out.LeftoverKilled, out.LeftoverAlive = p.LeftoverKilled, p.LeftoverAlive
	out.RemoteProcess = p.RemoteProcess
	out.FailureKind = facts.FailureKind
	res := call.Result{Facts: facts}
	if facts.FailureKind != "" {
		res.Failed, res.Error = true, sentence(p, timeoutSecs)
	}
	return out, res
}

// SoFar adds what a new Job has written until now, and the token to go on from. A Runner that
// cannot tell at this moment leaves them out; observe_jobs begins without a token too.
func (out *Output) SoFar(ctx context.Context, c *call.Call) {
	out.DurationMS = c.Elapsed().Milliseconds()
	job, err := c.Job(string(out.ExecutionID))
	if err != nil {
		return
	}
	v, err := lookAt(ctx, c, job, wire.ObserveJobsIn{Items: []wire.ObserveItem{{ID: string(job.ID)}}, Whole: true})
	if err != nil {
		return
	}
	out.ObservationToken = &v.Token
	out.InputState = inputState(v)
	if v.Outcome != nil {
		out.streams(*v.Outcome)
	}
}

func (out *Output) streams(p wire.ProcessOutcome) {
	out.Stdout, out.StdoutBytes, out.StdoutDropped, out.StdoutTruncated = p.Stdout.Text, p.Stdout.Bytes, p.Stdout.DroppedBytes, p.Stdout.Truncated
	out.Stderr, out.StderrBytes, out.StderrDropped, out.StderrTruncated = p.Stderr.Text, p.Stderr.Bytes, p.Stderr.DroppedBytes, p.Stderr.Truncated
}

func sentence(p *wire.ProcessOutcome, timeoutSecs int) string {
	switch {
	case p.TimedOut:
		return fmt.Sprintf("the command was ended at its limit of %d s", timeoutSecs)
	case p.Cancelled:
		return "the command was cancelled"
	case p.Signal != "":
		return "the command was ended by a signal"
	case p.ExitCode != nil:
		return fmt.Sprintf("the command ended with exit status %d", *p.ExitCode)
	}
	return "the command failed"
}
