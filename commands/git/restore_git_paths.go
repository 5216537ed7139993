package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner/wire"
)

// RestoreIn is the input of restore_git_paths.
type RestoreIn struct {
	Project   string   `json:"project"`
	SessionID string   `json:"session_id,omitempty"`
	Paths     []string `json:"paths"`
}

// RestoreOut is its output.
type RestoreOut struct {
	wire.RestorePathsOut
	StateChanged bool `json:"state_changed"`
}

// Restore puts tracked files back to their staged content; what was in them is lost.
var Restore = call.Spec{
	Name: "restore_git_paths", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Write,
	In: RestoreIn{}, Evidence: restoreEvidence, Run: restore,
}

func restoreEvidence(args json.RawMessage) event.Input {
	var in RestoreIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Paths: in.Paths, PathCount: len(in.Paths)}
}

func restore(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[RestoreIn](c)
	if err != nil {
		return call.Result{}, err
	}
	// What the text of a path tells is refused before a start is recorded.
	if _, err := relpath.Clean("paths", in.Paths, MaxRestorePaths); err != nil {
		return call.Result{}, err
	}
	o, err := c.Effect(ctx, wire.OpRestorePaths, wire.RestorePathsIn{Paths: in.Paths},
		call.EffectOptions{Timeout: restoreTimeout, Facts: restoreFacts})
	if err != nil {
		return call.Result{}, err
	}
	var out RestoreOut
	if err := json.Unmarshal(o.Result.Body, &out.RestorePathsOut); err != nil {
		return call.Result{}, fault.Wrap(err, fault.Internal, "the Runner's answer could not be read")
	}
	facts := restoreFacts(*o.Result)
	out.StateChanged = facts.Effect.StateChanged
	return call.Result{Output: out, Facts: facts}, nil
}

// restoreFacts is what the Runner's answer proves, at once or late.
func restoreFacts(r wire.Result) call.Facts {
	f := call.FactsOf(r)
	var out wire.RestorePathsOut
	if len(r.Body) > 0 && json.Unmarshal(r.Body, &out) == nil {
		f.Changed = out.Restored
		f.Effect.StateChanged = f.Effect.StateChanged || len(out.Restored) > 0
	}
	return f
}
