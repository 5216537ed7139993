package run

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// ShellIn is the input of run_shell.
type ShellIn struct {
	Project      string `json:"project"`
	SessionID    string `json:"session_id,omitempty"`
	Command      string `json:"command"`
	Shell        string `json:"shell,omitempty"`
	Cwd          string `json:"cwd,omitempty"`
	Interactive  bool   `json:"interactive,omitempty"`
	TimeoutSecs  int    `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int   `json:"sync_wait_secs,omitempty"`
	Purpose      string `json:"purpose,omitempty"`
	Key          string `json:"idempotency_key,omitempty"`
	Expectation  string `json:"result_expectation,omitempty"`
}

// ShellOut adds how it was run.
type ShellOut struct {
	Output
	Shell    string  `json:"shell"`
	Executor string  `json:"executor"`
	Resource *string `json:"resource"`
}

// RunShell runs one command line by sh or bash.
var RunShell = call.Spec{
	Name: "run_shell", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: ShellIn{}, Evidence: shellEvidence, Expects: true, Run: runShell,
}

func shellEvidence(args json.RawMessage) event.Input {
	var in ShellIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Shell: in.Shell, CommandBytes: len(in.Command), Cwd: in.Cwd, TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose,
		Expectation: in.Expectation}
}

func runShell(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ShellIn](c)
	if err != nil {
		return call.Result{}, err
	}
	shell := shellOf(c, in.Shell)
	if name := resourceOf(c); name != "" {
		return runRemote(ctx, c, in, wire.SSHShellIn{Session: c.Session.ID, Resource: name, Command: in.Command, Shell: shell, Cwd: cwdOf(c, in.Cwd)})
	}
	res, err := execute(ctx, c, wire.OpShell, wire.ProcessIn{Command: in.Command, Shell: shell, Interactive: in.Interactive,
		Cwd: cwdOf(c, in.Cwd)},
		in.TimeoutSecs, in.SyncWaitSecs, in.Key)
	if err != nil {
		return call.Result{}, err
	}
	res.Output = ShellOut{Output: res.Output.(Output), Shell: shell, Executor: "local"}
	return res, nil
}
