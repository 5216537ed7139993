package run

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// ScriptIn is the input of run_script.
type ScriptIn struct {
	Project      string   `json:"project"`
	SessionID    string   `json:"session_id,omitempty"`
	Language     string   `json:"language"`
	Script       string   `json:"script"`
	Args         []string `json:"args,omitempty"`
	Cwd          string   `json:"cwd,omitempty"`
	Stdin        string   `json:"stdin,omitempty"`
	Interactive  bool     `json:"interactive,omitempty"`
	TimeoutSecs  int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int     `json:"sync_wait_secs,omitempty"`
	Purpose      string   `json:"purpose,omitempty"`
	Key          string   `json:"idempotency_key,omitempty"`
	Expectation  string   `json:"result_expectation,omitempty"`
}

// RunScript runs a program given as text by an interpreter.
var RunScript = call.Spec{
	Name: "run_script", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: ScriptIn{}, Evidence: scriptEvidence, Expects: true, Run: runScript,
}

func scriptEvidence(args json.RawMessage) event.Input {
	var in ScriptIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Language: in.Language, CommandBytes: len(in.Script), ArgCount: len(in.Args), StdinBytes: len(in.Stdin),
		Cwd: in.Cwd, TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose,
		Expectation: in.Expectation}
}

func runScript(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ScriptIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := checkArgs(in.Args); err != nil {
		return call.Result{}, err
	}
	return execute(ctx, c, wire.OpScript, wire.ProcessIn{Language: in.Language, Script: in.Script, Args: in.Args,
		Stdin: in.Stdin, Interactive: in.Interactive, Cwd: cwdOf(c, in.Cwd)}, in.TimeoutSecs, in.SyncWaitSecs, in.Key)
}
