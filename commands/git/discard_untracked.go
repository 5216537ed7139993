package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// DiscardIn is the input of discard_untracked.
type DiscardIn struct {
	Project        string   `json:"project"`
	SessionID      string   `json:"session_id,omitempty"`
	Paths          []string `json:"paths,omitempty"`
	IncludeIgnored bool     `json:"include_ignored,omitempty"`
	DryRun         bool     `json:"dry_run,omitempty"`
	Digest         string   `json:"expected_digest,omitempty"`
}

// DiscardOut is its output.
type DiscardOut struct {
	DryRun bool `json:"dry_run"`
	wire.DiscardOut
}

// Discard removes untracked files; nobody else has what was in them.
var Discard = call.Spec{
	Name: "discard_untracked", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Write,
	In: DiscardIn{}, Evidence: discardEvidence, Run: discard,
}

func discardEvidence(args json.RawMessage) event.Input {
	var in DiscardIn
	_ = json.Unmarshal(args, &in)
	e := event.Input{Paths: in.Paths, PathCount: len(in.Paths), DryRun: in.DryRun}
	if in.IncludeIgnored {
		e.Flags = []string{"include_ignored"}
	}
	return e
}

func discard(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[DiscardIn](c)
	if err != nil {
		return call.Result{}, err
	}
	ask := wire.DiscardIn{Paths: in.Paths, IncludeIgnored: in.IncludeIgnored, Digest: in.Digest}
	if err := ask.Check(); err != nil {
		return call.Result{}, err
	}
	if in.DryRun {
		out, err := call.Ask[wire.DiscardOut](ctx, c, wire.OpPreviewDiscard, ask)
		if err != nil {
			return call.Result{}, err
		}
		return call.Result{Output: DiscardOut{true, out}}, nil
	}
	o, err := c.Effect(ctx, wire.OpDiscardUntracked, ask, call.EffectOptions{Timeout: restoreTimeout, Facts: discardFacts})
	if err != nil {
		return call.Result{Facts: call.Facts{Changed: leftChanged(fault.As(err))}}, err
	}
	var out wire.DiscardOut
	if err := json.Unmarshal(o.Result.Body, &out); err != nil {
		return call.Result{}, fault.Wrap(err, fault.Internal, "the Runner's answer could not be read")
	}
	return call.Result{Output: DiscardOut{false, out}, Facts: discardFacts(*o.Result)}, nil
}

// discardFacts is what the Runner's answer proves, at once or late.
func discardFacts(r wire.Result) call.Facts {
	f := call.FactsOf(r)
	var out wire.DiscardOut
	if len(r.Body) > 0 && json.Unmarshal(r.Body, &out) == nil {
		f.Changed = out.Discarded
	}
	if r.Fault != nil {
		f.Changed = leftChanged(r.Fault)
	}
	f.Effect.StateChanged = f.Effect.StateChanged || len(f.Changed) > 0
	return f
}

// leftChanged are the paths that a failure half-way names as changed.
func leftChanged(f *fault.Error) []string {
	var paths []string
	if b, err := json.Marshal(f.Details["changed_paths"]); err == nil {
		_ = json.Unmarshal(b, &paths)
	}
	return paths
}
