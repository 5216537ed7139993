package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// LogIn is the input of read_git_log.
type LogIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Limit     int    `json:"limit,omitempty"`
	Skip      int    `json:"skip,omitempty"`
}

// LogOut is its output; Limit is the effective one.
type LogOut struct {
	wire.GitLogOut
	Limit int `json:"limit"`
}

// Log lists commits from HEAD, newest first.
var Log = call.Spec{
	Name: "read_git_log", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: LogIn{}, Evidence: logEvidence, Run: gitLog,
}

func logEvidence(args json.RawMessage) event.Input {
	var in LogIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Limit: clamp(in.Limit, DefaultLogLimit, MaxLogLimit)}
}

func gitLog(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[LogIn](c)
	if err != nil {
		return call.Result{}, err
	}
	limit := clamp(in.Limit, DefaultLogLimit, MaxLogLimit)
	out, err := call.Ask[wire.GitLogOut](ctx, c, wire.OpGitLog, wire.GitLogIn{Limit: limit, Skip: in.Skip})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: LogOut{GitLogOut: out, Limit: limit}}, nil
}
