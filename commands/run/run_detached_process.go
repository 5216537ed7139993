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

// DetachedIn is the input of run_detached_process.
type DetachedIn struct {
	Project     string   `json:"project"`
	SessionID   string   `json:"session_id,omitempty"`
	Executable  string   `json:"executable"`
	Args        []string `json:"args,omitempty"`
	Cwd         string   `json:"cwd,omitempty"`
	Stdin       string   `json:"stdin,omitempty"`
	TimeoutSecs int      `json:"timeout_secs,omitempty"`
	Purpose     string   `json:"purpose,omitempty"`
	Expectation string   `json:"result_expectation,omitempty"`
	Accepted    []int    `json:"accepted_exit_codes,omitempty"`
	Key         string   `json:"idempotency_key,omitempty"`
}

// RunDetachedProcess starts a Job that has a process of its own to keep it: it goes on while its
// Runner is away. It proves nothing about the Project's files: who would look at them may be away.
var RunDetachedProcess = call.Spec{
	Name: "run_detached_process", Scopes: []call.Scope{call.ScopeJobRun, call.ScopeJobDetach}, Plane: call.PlaneProject, Class: call.Execute,
	In: DetachedIn{}, Evidence: detachedEvidence, Expects: true, Run: runDetached,
}

func detachedEvidence(args json.RawMessage) event.Input {
	var in DetachedIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Executable: baseName(in.Executable), ArgCount: len(in.Args), StdinBytes: len(in.Stdin), Cwd: in.Cwd,
		TimeoutSecs: detachedTimeout(in), Purpose: in.Purpose, Expectation: in.Expectation, AcceptedExitCodes: in.Accepted}
}

func detachedTimeout(in DetachedIn) int {
	if in.TimeoutSecs == 0 {
		return DefaultJobTimeoutSecs
	}
	return in.TimeoutSecs
}

func runDetached(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[DetachedIn](c)
	if err != nil {
		return call.Result{}, err
	}
	p := wire.ProcessIn{Executable: in.Executable, Args: in.Args, Stdin: in.Stdin, Cwd: cwdOf(c, in.Cwd)}
	if err := in.check(c, p); err != nil {
		return call.Result{}, err
	}
	o, err := c.Effect(ctx, wire.OpDetached, p, call.EffectOptions{Timeout: time.Duration(detachedTimeout(in)) * time.Second, Job: true, Key: in.Key})
	if err != nil {
		return call.Result{}, err
	}
	out := StartJobOut{EffectiveTimeout: detachedTimeout(in), Executor: "local", Status: "agent_queued"}
	out.begun(ctx, c, o)
	return call.Result{Output: out, Facts: call.Facts{Promoted: true, Execution: out.JobID}}, nil
}

func (in DetachedIn) check(c *call.Call, p wire.ProcessIn) error {
	if err := checkArgs(in.Args); err != nil {
		return err
	}
	if err := checkExitCodes(in.Accepted); err != nil {
		return err
	}
	if err := checkNUL(p); err != nil {
		return err
	}
	if err := checkResource(c); err != nil {
		return err
	}
	if err := p.CheckCwd(); err != nil {
		return err
	}
	if c.Target != nil && !serves(c, wire.OpDetached) {
		f := fault.New(fault.CapabilityUnavailable, "the Runner of this Project detaches no Jobs").WithNext("use run_job")
		f.ExecutionState = string(event.NotStarted)
		return f
	}
	return nil
}
