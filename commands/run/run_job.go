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

// StartJobIn is the input of run_job: a command for a shell, or an executable with arguments.
type StartJobIn struct {
	Project     string   `json:"project"`
	SessionID   string   `json:"session_id,omitempty"`
	Command     string   `json:"command,omitempty"`
	Shell       string   `json:"shell,omitempty"`
	Executable  string   `json:"executable,omitempty"`
	Args        []string `json:"args,omitempty"`
	Cwd         string   `json:"cwd,omitempty"`
	Stdin       string   `json:"stdin,omitempty"`
	Interactive bool     `json:"interactive,omitempty"`
	TimeoutSecs int      `json:"timeout_secs,omitempty"`
	Purpose     string   `json:"purpose,omitempty"`
	Expectation string   `json:"result_expectation,omitempty"`
	Accepted    []int    `json:"accepted_exit_codes,omitempty"`
	Key         string   `json:"idempotency_key,omitempty"`
}

// StartJobOut is its output: the Job as its Runner has it a moment later, and how it is followed.
type StartJobOut struct {
	JobID            event.ExecutionID    `json:"job_id"`
	Status           string               `json:"status"`
	State            event.ExecutionState `json:"execution_state,omitempty"` // absent while nobody can tell that it has started
	JobsAhead        *int                 `json:"jobs_ahead,omitempty"`      // while it waits for a slot
	ObservationToken *string              `json:"observation_token"`
	EffectiveTimeout int                  `json:"effective_timeout_secs"` // counts from its start
	Executor         string               `json:"executor"`               // local, ssh
	Shell            *string              `json:"shell"`
	Resource         *string              `json:"resource"`
	Replayed         bool                 `json:"replayed,omitempty"` // it is the Job that the key was given for first
}

// RunJob starts work that outlives its answer. It waits for one of the Runner's slots.
var RunJob = call.Spec{
	Name: "run_job", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: StartJobIn{}, Evidence: jobEvidence, Expects: true, Run: runJob,
}

func jobEvidence(args json.RawMessage) event.Input {
	var in StartJobIn
	_ = json.Unmarshal(args, &in)
	e := event.Input{Shell: in.Shell, CommandBytes: len(in.Command), ArgCount: len(in.Args), StdinBytes: len(in.Stdin), Cwd: in.Cwd,
		TimeoutSecs: jobTimeout(in), Purpose: in.Purpose, Expectation: in.Expectation, AcceptedExitCodes: in.Accepted}
	if in.Executable != "" {
		e.Executable = baseName(in.Executable)
	}
	return e
}

func jobTimeout(in StartJobIn) int {
	if in.TimeoutSecs == 0 {
		return DefaultJobTimeoutSecs
	}
	return in.TimeoutSecs
}

func runJob(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[StartJobIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := in.check(); err != nil {
		return call.Result{}, err
	}
	out := StartJobOut{EffectiveTimeout: jobTimeout(in), Executor: "local", Status: "agent_queued"}
	if in.Command != "" {
		shell := shellOf(c, in.Shell)
		out.Shell = &shell
	}
	var o call.Outcome
	if name := resourceOf(c); name != "" {
		out.Executor, out.Resource = "ssh", &name
		o, err = remoteJob(ctx, c, in, out)
	} else {
		o, err = localJob(ctx, c, in, out)
	}
	if err != nil {
		return call.Result{}, err
	}
	out.begun(ctx, c, o)
	return call.Result{Output: out, Facts: call.Facts{Promoted: true, Execution: out.JobID}}, nil
}

// check holds what the schema cannot say: exactly one of the two forms.
func (in StartJobIn) check() error {
	bad := func(field, text string) error {
		return fault.New(fault.InvalidArguments, "%s", text).WithField(field).WithNext("give a command, or an executable with its args")
	}
	switch {
	case (in.Command == "") == (in.Executable == ""):
		return bad("command", "a Job is one command for a shell, or one executable")
	case in.Executable == "" && len(in.Args) > 0:
		return bad("args", "args belong to an executable")
	case in.Executable != "" && in.Shell != "":
		return bad("shell", "a shell takes a command, not an executable")
	}
	if err := checkArgs(in.Args); err != nil {
		return err
	}
	return checkExitCodes(in.Accepted)
}

// shellOf is the call's shell, else the Session's, else sh (EXE-13).
func shellOf(c *call.Call, shell string) string {
	if shell == "" && c.Session != nil {
		shell = c.Session.Context.DefaultShell
	}
	if shell == "" {
		shell = wire.Shells[0]
	}
	return shell
}

func localJob(ctx context.Context, c *call.Call, in StartJobIn, out StartJobOut) (o call.Outcome, err error) {
	op, p := wire.OpProcess, wire.ProcessIn{Executable: in.Executable, Args: in.Args, Stdin: in.Stdin, Interactive: in.Interactive,
		Cwd: cwdOf(c, in.Cwd)}
	if in.Command != "" {
		op, p.Command, p.Shell = wire.OpShell, in.Command, *out.Shell
	}
	if err := checkNUL(p); err != nil {
		return o, err
	}
	if err := checkInteractive(c, p); err != nil {
		return o, err
	}
	if err := p.CheckCwd(); err != nil {
		return o, err
	}
	scope, err := scopeOf(c, op, p, c.Evidence())
	if err != nil {
		return o, err
	}
	p.Bind = scope != nil
	return c.Effect(ctx, op, p, in.effect(scope))
}

// effect is how the Job is made: it is one from the start.
func (in StartJobIn) effect(scope *event.ValidationScope) call.EffectOptions {
	return call.EffectOptions{Timeout: time.Duration(jobTimeout(in)) * time.Second, Job: true, Validates: scope, Key: in.Key}
}

// remoteJob goes through the Session's resource and nowhere else (EXE-11, NEG-18).
func remoteJob(ctx context.Context, c *call.Call, in StartJobIn, out StartJobOut) (o call.Outcome, err error) {
	if in.Interactive {
		return o, noTerminal()
	}
	if in.Executable != "" || in.Stdin != "" {
		f := fault.As(checkResource(c)).WithNext("give a command without stdin, or use a Session without a resource")
		if in.Executable == "" {
			return o, f.WithField("stdin")
		}
		return o, f.WithField("executable")
	}
	remote := wire.SSHShellIn{Session: c.Session.ID, Resource: *out.Resource, Command: in.Command, Shell: *out.Shell, Cwd: cwdOf(c, in.Cwd)}
	if err := checkRemote(c, remote); err != nil {
		return o, err
	}
	return c.Effect(ctx, wire.OpSSHShell, remote, in.effect(nil))
}

// begun fills in which Job it is, the one that was started or a key's first.
func (out *StartJobOut) begun(ctx context.Context, c *call.Call, o call.Outcome) {
	out.JobID, out.Replayed = c.Execution(), o.First != ""
	if o.Result != nil { // a key's first Job, which has ended
		end := standingOf(wire.JobView{Terminal: true, State: o.Result.State, Outcome: o.Result.Process, Fault: o.Result.Fault})
		out.Status, out.State = end.Status, end.State
	}
	out.now(ctx, c)
}

// now fills in how the Job is a moment after its acceptance. A Runner that cannot tell leaves it
// at that: it was accepted.
func (out *StartJobOut) now(ctx context.Context, c *call.Call) {
	job, err := c.Job(string(out.JobID))
	if err != nil {
		return
	}
	v, err := lookAt(ctx, c, job, wire.ObserveJobsIn{Items: []wire.ObserveItem{{ID: string(job.ID)}}})
	if err != nil {
		return
	}
	now := standingOf(v)
	out.Status, out.State, out.ObservationToken = now.Status, now.State, &v.Token
	if v.Waiting {
		out.JobsAhead = &v.Ahead
	}
}
