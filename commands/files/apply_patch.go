package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/patch"
	"webcodex/runner/wire"
)

// PatchIn is the input of apply_patch.
type PatchIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Patch     string `json:"patch"`
}

// PatchCheckedIn is the input of apply_patch_checked and of validate_patch.
type PatchCheckedIn struct {
	Project       string           `json:"project"`
	SessionID     string           `json:"session_id,omitempty"`
	Patch         string           `json:"patch"`
	Expected      []wire.FileFence `json:"expected_files,omitempty"`
	DenySensitive bool             `json:"deny_sensitive_paths,omitempty"`
}

// PatchOut is the output of the two that apply.
type PatchOut struct {
	Applied bool `json:"applied"`
	wire.PatchOut
}

// ApplyPatch changes files by a unified diff, all or none.
var ApplyPatch = call.Spec{
	Name: "apply_patch", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Write,
	In: PatchIn{}, Evidence: patchEvidence, Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
		in, err := call.Decode[PatchIn](c)
		if err != nil {
			return call.Result{}, err
		}
		return applyPatch(ctx, c, wire.PatchIn{Patch: in.Patch})
	},
}

// ApplyPatchChecked is ApplyPatch on files whose content the caller knows.
var ApplyPatchChecked = call.Spec{
	Name: "apply_patch_checked", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Write,
	In: PatchCheckedIn{}, Evidence: patchEvidence, Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
		in, err := call.Decode[PatchCheckedIn](c)
		if err != nil {
			return call.Result{}, err
		}
		return applyPatch(ctx, c, in.wire())
	},
}

func (in PatchCheckedIn) wire() wire.PatchIn {
	return wire.PatchIn{Patch: in.Patch, Expected: in.Expected, DenySensitive: in.DenySensitive}
}

// patchEvidence keeps the names that the patch touches, and counts; nothing of its text. One that
// cannot be read leaves nothing.
func patchEvidence(args json.RawMessage) event.Input {
	var in struct {
		Patch string `json:"patch"`
	}
	_ = json.Unmarshal(args, &in)
	if len(in.Patch) > MaxPatchBytes {
		return event.Input{}
	}
	files, _ := patch.Parse(in.Patch)
	e := event.Input{ChangeCount: len(files)}
	for _, f := range files {
		e.Paths = append(e.Paths, f.Paths()...)
	}
	e.PathCount = len(e.Paths)
	return e
}

func applyPatch(ctx context.Context, c *call.Call, in wire.PatchIn) (call.Result, error) {
	out, facts, err := change(ctx, c, wire.OpApplyPatch, in, func(o wire.PatchOut) []string { return o.ChangedPaths })
	if err != nil {
		return call.Result{Facts: facts}, err
	}
	return call.Result{Output: PatchOut{true, out}, Facts: facts}, nil
}
