package wire

import (
	"errors"
	"fmt"

	"webcodex/internal/fault"
	"webcodex/internal/patch"
	"webcodex/internal/relpath"
)

// Ops of patches; both take PatchIn and give PatchOut. OpCheckPatch changes nothing and refuses
// what OpApplyPatch would.
const (
	OpApplyPatch Op = "apply_patch"
	OpCheckPatch Op = "check_patch"
)

// Bounds of a patch (AUTH-19).
const (
	MaxPatchBytes = patch.MaxBytes
	MaxPatchFiles = patch.MaxFiles
	// MaxPatchPaths are the files that one patch touches, both names of a rename; as many are
	// recorded of a call (EVT-26).
	MaxPatchPaths = 32
)

// PatchIn is one unified diff.
type PatchIn struct {
	Patch string `json:"patch"`
	// Expected are the contents that files must have, ≤ 32; each is one that the patch changes or
	// copies.
	Expected      []FileFence `json:"expected_files,omitempty"`
	DenySensitive bool        `json:"deny_sensitive_paths,omitempty"`
}

// FileFence is what a caller knows of a file.
type FileFence struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// PatchOut tells what was changed; of a check, what would be.
type PatchOut struct {
	Changed      bool          `json:"changed"`
	Files        []PatchedFile `json:"files"`
	ChangedPaths []string      `json:"changed_paths"`
	Stat         DiffStat      `json:"diff_stat"`
}

// PatchedFile is one file of a patch.
type PatchedFile struct {
	ChangedFile
	Mode      string `json:"mode,omitempty"` // the one that it was given
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	// Moved are hunks that stood elsewhere than the patch says.
	Moved []MovedHunk `json:"moved_hunks,omitempty"`
}

// MovedHunk is a hunk, counted from 1, and how many lines further down it stood.
type MovedHunk struct {
	Hunk  int `json:"hunk"`
	Lines int `json:"lines"`
}

// ContentLeft is the kind of a PatchConflict besides those of an EditConflict: a deleted file that holds more than
// the patch deletes.
const ContentLeft = "content_left"

// PatchConflict is why a patch was not applied. It is listed in the fault's member "conflicts";
// nothing was changed. File and Hunk count from 1.
type PatchConflict struct {
	File int    `json:"file"`
	Hunk int    `json:"hunk,omitempty"`
	Path string `json:"path"`
	Kind string `json:"conflict_kind"`
	// PatchLine is where the patch has it, Line where the file should, DiffersAt the line there
	// that is the first to be another one; 0: the file ends before.
	PatchLine    int    `json:"patch_line,omitempty"`
	Line         int    `json:"line,omitempty"`
	DiffersAt    int    `json:"differs_at,omitempty"`
	Matches      int    `json:"matches,omitempty"`
	ActualSHA256 string `json:"actual_sha256,omitempty"`
}

// Parse reads the patch and says what is wrong with the request without looking at a file, as the
// checks of the other changes do. Errors: invalid_arguments with field patch, the reason and the
// patch_line; invalid_path for a path that may not be written.
func (in PatchIn) Parse() ([]patch.File, error) {
	if len(in.Patch) > MaxPatchBytes {
		return nil, badArgument("patch", "a patch has at most %d bytes", MaxPatchBytes).WithReason("too_large").
			WithNext("split it, or write whole files")
	}
	files, err := patch.Parse(in.Patch)
	var bad *patch.Error
	if errors.As(err, &bad) {
		return nil, badArgument("patch", "line %d of the patch: %s", bad.Line, bad.Message).WithReason(bad.Reason).With("patch_line", bad.Line).
			WithNext("make the patch again from the files as they are, or use edit_project_files")
	}
	var all []Target
	read := map[string]bool{} // paths whose content is looked at
	for i, f := range files {
		from, to, err := in.paths(f)
		if err != nil {
			return nil, fault.As(err).With("patch_line", f.At)
		}
		files[i].Path, files[i].ToPath = from, to
		for _, p := range files[i].Paths() {
			all = append(all, Target{Change: i, Path: p, Field: "patch"})
		}
		read[from] = read[from] || f.Kind != patch.Create
	}
	if len(all) > MaxPatchPaths {
		return nil, badArgument("patch", "a patch touches at most %d files, both names of a rename", MaxPatchPaths).WithReason(patch.TooMany)
	}
	if err := Distinct(all); err != nil {
		return nil, err
	}
	return files, in.checkExpected(read)
}

// Check is Parse without its result.
func (in PatchIn) Check() error {
	_, err := in.Parse()
	return err
}

// paths are those of a file in their shortest spelling.
func (in PatchIn) paths(f patch.File) (from, to string, err error) {
	if from, err = filePath("patch", f.Path); err != nil {
		return "", "", err
	}
	if f.ToPath != "" {
		if to, err = filePath("patch", f.ToPath); err != nil {
			return "", "", err
		}
	}
	if in.DenySensitive && (relpath.Sensitive(from) || relpath.Sensitive(to)) {
		return "", "", fault.New(fault.InvalidPath, "the patch touches a file where secrets usually lie, and deny_sensitive_paths is set").
			WithField("patch").WithReason("sensitive_path")
	}
	return from, to, nil
}

// checkExpected holds that every fence guards something: one on a file that the patch leaves alone
// is a mistake of the caller.
func (in PatchIn) checkExpected(read map[string]bool) error {
	if len(in.Expected) > MaxPatchFiles {
		return badArgument("expected_files", "expected_files has at most %d entries", MaxPatchFiles)
	}
	seen := map[string]bool{}
	for i, e := range in.Expected {
		field := fmt.Sprintf("expected_files[%d]", i)
		p, err := filePath(field+".path", e.Path)
		switch {
		case err != nil:
			return err
		case !hex64.MatchString(e.SHA256):
			return badArgument(field+".sha256", "%s.sha256 must be 64 hex digits", field)
		case !read[p]:
			return badArgument(field+".path", "the patch changes no such file").WithReason("not_in_patch")
		case seen[p]:
			return badArgument(field+".path", "the file is named twice").WithReason("duplicate_path")
		}
		seen[p] = true
	}
	return nil
}

// Expectation is the content that a file must have, as far as the caller told; empty: it did not.
func (in PatchIn) Expectation(path string) string {
	for _, e := range in.Expected {
		if p, err := filePath("", e.Path); err == nil && p == path {
			return e.SHA256
		}
	}
	return ""
}

func init() {
	addOp[PatchIn, PatchOut](OpApplyPatch, true)
	addOp[PatchIn, PatchOut](OpCheckPatch, false)
}
