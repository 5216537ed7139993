package checkpoint

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/runner/wire"
)

// CreateIn is the input of create_workspace_checkpoint.
type CreateIn struct {
	Project   string   `json:"project"`
	SessionID string   `json:"session_id,omitempty"`
	Title     string   `json:"title,omitempty"`
	Note      string   `json:"note,omitempty"`
	Kind      string   `json:"kind,omitempty"`
	Labels    []string `json:"labels,omitempty"`
	// Untracked: untracked files are kept too; absent: true.
	Untracked *bool `json:"include_untracked,omitempty"`
}

// Create keeps the files of a Project as they are.
var Create = call.Spec{
	Name: "create_workspace_checkpoint", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Mutate,
	In: CreateIn{}, Evidence: createEvidence, Run: create,
}

func createEvidence(args json.RawMessage) event.Input {
	var in CreateIn
	_ = json.Unmarshal(args, &in)
	return event.Input{TagCount: len(in.Labels), TextBytes: len(in.Title) + len(in.Note)}
}

func create(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[CreateIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if in.Kind == "" {
		in.Kind = wire.CheckpointKinds[0]
	}
	// What people say of it lies in the repository for as long as it does.
	req := wire.CreateCheckpointIn{ID: newID(), Untracked: in.Untracked == nil || *in.Untracked,
		CheckpointAbout: wire.CheckpointAbout{Title: redact.Text(in.Title, MaxTitle), Note: redact.Text(in.Note, MaxNote), Kind: in.Kind, Labels: in.Labels}}
	if err := req.Check(); err != nil {
		return call.Result{}, err
	}
	out, facts, err := change[wire.CreateCheckpointOut](ctx, c, wire.OpCreateCheckpoint, req, nil)
	return call.Result{Output: out, Facts: facts}, err
}

func newID() string { return "wc_ckpt_" + event.NewNonce() }

// change makes one effect and decodes its answer; changed gives the paths that it changed, nil: none.
func change[Out any](ctx context.Context, c *call.Call, op wire.Op, in any, changed func(Out) []string) (out Out, _ call.Facts, _ error) {
	facts := func(r wire.Result) call.Facts {
		f := call.FactsOf(r)
		var o Out
		if changed != nil && len(r.Body) > 0 && json.Unmarshal(r.Body, &o) == nil {
			f.Changed = changed(o)
			f.Effect.StateChanged = f.Effect.StateChanged || len(f.Changed) > 0
		}
		return f
	}
	o, err := c.Effect(ctx, op, in, call.EffectOptions{Timeout: effectTimeout, Facts: facts})
	if err != nil {
		return out, call.Facts{}, err
	}
	if err := json.Unmarshal(o.Result.Body, &out); err != nil {
		return out, facts(*o.Result), fault.Wrap(err, fault.Internal, "the Runner's answer could not be read")
	}
	return out, facts(*o.Result), nil
}
