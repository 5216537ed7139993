package run

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// InputIn is the input of send_execution_input.
type InputIn struct {
	Project     string `json:"project"`
	SessionID   string `json:"session_id,omitempty"`
	ExecutionID string `json:"execution_id"`
	Text        string `json:"text,omitempty"`
	Close       bool   `json:"close,omitempty"`
}

// InputOut is its output.
type InputOut struct {
	ExecutionID string `json:"execution_id"`
	Accepted    int    `json:"accepted_bytes"`
	Bytes       int    `json:"bytes"` // that were sent: more than accepted where the terminal was full
	Closed      bool   `json:"closed"`
}

// SendInput types on the terminal of an interactive execution (ruling 11). What is typed is stored
// nowhere; it is typed at most once.
var SendInput = call.Spec{
	Name: "send_execution_input", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: InputIn{}, Evidence: inputEvidence, Run: sendInput,
}

func inputEvidence(args json.RawMessage) event.Input {
	var in InputIn
	_ = json.Unmarshal(args, &in)
	out := event.Input{StdinBytes: len(in.Text)}
	if event.ExecutionID(in.ExecutionID).Valid() {
		out.Target = in.ExecutionID
	}
	return out
}

func sendInput(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[InputIn](c)
	if err != nil {
		return call.Result{}, err
	}
	switch {
	case in.Text == "" && !in.Close:
		return call.Result{}, fault.New(fault.InvalidArguments, "there is nothing to send").WithField("text").WithNext("give text, close, or both")
	case len(in.Text) > MaxInputBytes:
		return call.Result{}, fault.New(fault.InvalidArguments, "at most %d bytes are sent at once", MaxInputBytes).WithField("text").
			WithNext("send it in parts, or put large data into a file")
	}
	job, err := c.Job(in.ExecutionID)
	if err != nil {
		return call.Result{}, unknownExecution(err)
	}
	if c.Target != nil && job.Target.Ref != c.Target.Ref {
		return call.Result{}, fault.New(fault.UnknownJob, "this Project has no such execution").WithField("execution_id")
	}
	if job.Ended {
		return call.Result{}, fault.New(fault.ExecutionEnded, "the execution has ended").WithField("execution_id")
	}
	o, err := c.Effect(ctx, wire.OpExecutionInput, wire.ExecutionInputIn{ID: in.ExecutionID, Text: in.Text, Close: in.Close},
		call.EffectOptions{Timeout: inputTimeout})
	if err != nil {
		return call.Result{}, err
	}
	var got wire.ExecutionInputOut
	if err := json.Unmarshal(o.Result.Body, &got); err != nil {
		return call.Result{}, fault.Wrap(err, fault.Internal, "the Runner's answer could not be read")
	}
	return call.Result{Output: InputOut{ExecutionID: in.ExecutionID, Accepted: got.AcceptedBytes, Bytes: len(in.Text),
		Closed: in.Close && got.AcceptedBytes == len(in.Text)}, Facts: call.FactsOf(*o.Result)}, nil
}

// unknownExecution says of an id that names no Job which argument it was.
func unknownExecution(err error) error {
	f := *fault.As(err)
	if f.Field == "job_id" {
		f.Field = "execution_id"
	}
	return &f
}

// checkInteractive refuses what a run on a terminal cannot have.
func checkInteractive(c *call.Call, in wire.ProcessIn) error {
	if !in.Interactive {
		return nil
	}
	if in.Stdin != "" {
		return fault.New(fault.InvalidArguments, "an interactive run has no stdin").WithField("stdin").
			WithNext("send what it reads with send_execution_input")
	}
	if c.Target != nil && !serves(c, wire.OpExecutionInput) {
		f := fault.New(fault.CapabilityUnavailable, "the Runner of this Project gives no run a terminal").WithField("interactive")
		f.ExecutionState = string(event.NotStarted)
		return f
	}
	return nil
}

// interactiveGrace is how long the answer to an interactive run waits: long enough that most have
// asked by then, and one that asks nothing and ends needs no second call.
func interactiveGrace(syncWait *int) time.Duration {
	if syncWait == nil {
		return InteractiveWait
	}
	return graceOf(syncWait)
}
