package files

import (
	"context"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// ValidatePatchOut is the output of validate_patch. What is wrong with a patch is its result, not
// an error.
type ValidatePatchOut struct {
	// Valid: it is a patch, and one that may be applied here. Applies: it fits the files as they are.
	Valid   bool `json:"valid"`
	Applies bool `json:"applies"`
	// Of one that is not valid or does not apply.
	Reason        string `json:"reason_code,omitempty"`
	Message       string `json:"message,omitempty"`
	PatchLine     any    `json:"patch_line,omitempty"`
	Conflicts     any    `json:"conflicts,omitempty"`
	ConflictCount any    `json:"conflict_count,omitempty"`
	// Of one that applies: what it would do.
	Files        []wire.PatchedFile `json:"files"`
	ChangedPaths []string           `json:"changed_paths"`
	Stat         wire.DiffStat      `json:"diff_stat"`
}

// ValidatePatch says whether a patch would be applied; it changes nothing.
var ValidatePatch = call.Spec{
	Name: "validate_patch", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: PatchCheckedIn{}, Evidence: patchEvidence, Run: validatePatch,
}

func validatePatch(ctx context.Context, c *call.Call) (call.Result, error) {
	args, err := call.Decode[PatchCheckedIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out := ValidatePatchOut{Files: []wire.PatchedFile{}, ChangedPaths: []string{}}
	in := args.wire()
	if err := in.Check(); err != nil {
		f := fault.As(err)
		if f.Field != "patch" {
			return call.Result{}, err // another argument is wrong
		}
		return call.Result{Output: out.not(f)}, nil
	}
	out.Valid = true
	got, err := call.Ask[wire.PatchOut](ctx, c, wire.OpCheckPatch, in)
	if err != nil {
		f := fault.As(err)
		if f.Kind != fault.EditConflict && f.Kind != fault.InvalidPath && f.Kind != fault.InvalidArguments {
			return call.Result{}, err
		}
		return call.Result{Output: out.not(f)}, nil
	}
	out.Applies, out.Stat = true, got.Stat
	out.Files, out.ChangedPaths = append(out.Files, got.Files...), append(out.ChangedPaths, got.ChangedPaths...)
	return call.Result{Output: out}, nil
}

// not says why it would not be applied.
func (out ValidatePatchOut) not(f *fault.Error) ValidatePatchOut {
	out.Reason, out.Message = f.Reason, f.Message
	if out.Reason == "" {
		out.Reason = string(f.Kind)
	}
	out.PatchLine, out.Conflicts, out.ConflictCount = f.Details["patch_line"], f.Details["conflicts"], f.Details["conflict_count"]
	return out
}
