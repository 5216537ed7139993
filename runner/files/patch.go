package files

import (
	"context"
	"io/fs"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/patch"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// patchPlan is a plan made from a patch.
type patchPlan struct {
	plan
	in        wire.PatchIn
	out       wire.PatchOut
	conflicts []wire.PatchConflict // the first maxPatchConflicts
	misfits   int                  // all of them
}

// applyPatch answers apply_patch: all files of the patch or none, by the same transaction as
// edit_project_files.
func (s *service) applyPatch(ctx context.Context, p *runner.Project, in wire.PatchIn) (wire.PatchOut, error) {
	defer s.exclusive(p.Root, p.Fingerprint)()
	pl := &patchPlan{plan: plan{p: p}, in: in}
	defer pl.close()
	if err := pl.make(ctx); err != nil {
		return wire.PatchOut{}, err
	}
	if err := s.transact(ctx, p, pl.steps); err != nil {
		return wire.PatchOut{}, err
	}
	pl.out.Changed, pl.out.ChangedPaths = len(pl.steps) > 0, pl.changedPaths()
	return pl.out, nil
}

// checkPatch answers validate_patch; its refusals are those of applyPatch.
func (s *service) checkPatch(ctx context.Context, p *runner.Project, in wire.PatchIn) (wire.PatchOut, error) {
	pl := &patchPlan{plan: plan{p: p}, in: in}
	defer pl.close()
	if err := pl.make(ctx); err != nil {
		return wire.PatchOut{}, err
	}
	pl.out.ChangedPaths = pl.changedPaths()
	return pl.out, nil
}

// make plans all files of the patch; nothing is written yet.
func (pl *patchPlan) make(ctx context.Context) error {
	files, err := pl.in.Parse()
	if err != nil {
		return err
	}
	for i, f := range files {
		if ctx.Err() != nil {
			return timedOut(ctx)
		}
		if err := pl.file(i, f); err != nil {
			return fault.As(at(err, "patch")).With("patch_line", f.At)
		}
	}
	if pl.misfits > 0 {
		return fault.New(fault.EditConflict, "the patch does not fit the files as they are; nothing was changed (hunks or files that do not fit: %d)", pl.misfits).
			With("conflict_kind", pl.conflicts[0].Kind).With("conflicts", pl.conflicts).With("conflict_count", pl.misfits).
			WithNext("read the files again and make the patch from what they hold now")
	}
	pl.out.Stat.Files = len(pl.out.Files)
	return pl.distinct()
}

func (pl *patchPlan) conflict(i int, path string, c wire.PatchConflict) {
	c.File, c.Path = i+1, path
	if pl.misfits++; pl.misfits <= maxPatchConflicts {
		pl.conflicts = append(pl.conflicts, c)
	}
}

// file plans one file of the patch.
func (pl *patchPlan) file(i int, f patch.File) error {
	added, deleted := f.Counts()
	out := wire.PatchedFile{ChangedFile: wire.ChangedFile{Kind: f.Kind}, Mode: f.Mode, Additions: added, Deletions: deleted}
	if f.Kind == patch.Create {
		applied, _ := f.Apply("") // added lines alone: there is nothing that they could not fit
		return pl.create(i, f.Path, []byte(applied.Text), executable(f.Mode), out)
	}
	t := pl.tree()
	parts, err := relpath.SplitFile(f.Path)
	if err != nil {
		return err
	}
	where, err := t.find(parts, finding{})
	if err != nil {
		return err
	}
	before, sum, err := pl.old(&where, f)
	if err != nil {
		return err
	}
	if want := pl.in.Expectation(f.Path); want != "" && !strings.EqualFold(want, sum) {
		pl.conflict(i, where.path, wire.PatchConflict{Kind: wire.SHA256Mismatch, PatchLine: f.At, ActualSHA256: sum})
		return nil
	}
	out.Path, out.SHA256Before = where.path, sum
	applied, conflicts := f.Apply(string(before))
	for _, c := range conflicts {
		pl.conflict(i, where.path, wire.PatchConflict{Hunk: c.Hunk + 1, Kind: c.Kind, PatchLine: c.PatchLine, Line: c.Line,
			DiffersAt: c.DiffersAt, Matches: c.Matches, ActualSHA256: sum})
	}
	if len(conflicts) > 0 {
		return nil
	}
	for _, m := range applied.Moved {
		out.Moved = append(out.Moved, wire.MovedHunk{Hunk: m.Hunk + 1, Lines: m.Lines})
	}
	return pl.existing(i, f, where, before, []byte(applied.Text), out)
}

// old reads a file that the patch is about. What is only read may have another name or be
// write-protected; what is changed may not.
func (pl *patchPlan) old(where *place, f patch.File) ([]byte, string, error) {
	if f.Kind == patch.Edit {
		return pl.load(where, true)
	}
	file, info, err := where.open()
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	where.info = info
	return pl.content(file, info)
}

// existing plans what becomes of a file that is there.
func (pl *patchPlan) existing(i int, f patch.File, where place, before, after []byte, out wire.PatchedFile) error {
	if pl.held += int64(len(after)); len(after) > maxEditBytes || pl.held > maxTransaction {
		return badPath(reasonTooLarge, nil)
	}
	perm := where.info.Mode().Perm()
	mode := perm
	if set := executable(f.Mode); set != nil {
		mode = set(perm)
	}
	switch f.Kind {
	case patch.Delete:
		if len(after) > 0 {
			pl.conflict(i, where.path, wire.PatchConflict{Kind: wire.ContentLeft, PatchLine: f.At, ActualSHA256: out.SHA256Before})
			return nil
		}
		pl.did(out, step{&remove{at: where}, i, "patch"})
		return nil
	case patch.Copy:
		out.ToPath = f.ToPath
		return pl.create(i, f.ToPath, after, exactly(mode), out)
	case patch.Rename:
		out.ToPath = f.ToPath
		if string(before) == string(after) && mode == perm {
			return pl.rename(i, where, out)
		}
		// The old one is taken away and the new one made: two steps of one change.
		pl.steps = append(pl.steps, step{&remove{at: where}, i, "patch"})
		return pl.create(i, f.ToPath, after, exactly(mode), out)
	}
	out.SHA256After, out.Bytes = hashOf(after), int64(len(after))
	if string(before) == string(after) && mode == perm {
		pl.count(out)
		return nil
	}
	pl.did(out, step{&replace{at: where, before: before, after: after, mode: mode}, i, "patch"})
	return nil
}

func (pl *patchPlan) count(out wire.PatchedFile) {
	pl.out.Files = append(pl.out.Files, out)
	pl.out.Stat.Additions += out.Additions
	pl.out.Stat.Deletions += out.Deletions
}

func (pl *patchPlan) did(out wire.PatchedFile, st step) {
	pl.count(out)
	pl.steps = append(pl.steps, st)
}

// create plans a new file; out already says what it is made from.
func (pl *patchPlan) create(i int, path string, content []byte, mode func(fs.FileMode) fs.FileMode, out wire.PatchedFile) error {
	t := pl.tree()
	where, err := vacant(t, path)
	if err != nil {
		return err
	}
	if out.Path == "" {
		out.Path = where.path
	} else {
		out.ToPath = where.path
	}
	out.SHA256After, out.Bytes = hashOf(content), int64(len(content))
	pl.did(out, step{&create{tree: t, at: where, content: content, mode: mode}, i, "patch"})
	return nil
}

func (pl *patchPlan) rename(i int, from place, out wire.PatchedFile) error {
	t := pl.tree()
	to, err := vacant(t, out.ToPath)
	if err != nil {
		return err
	}
	out.ToPath, out.SHA256After, out.Bytes = to.path, out.SHA256Before, from.info.Size()
	pl.did(out, step{&rename{from: from, to: to, tree: t}, i, "patch"})
	return nil
}

// executable gives the permissions that git's mode stands for, from those that are there; nil
// where the patch names no mode.
func executable(mode string) func(fs.FileMode) fs.FileMode {
	switch mode {
	case patch.ModeExecutable:
		return func(m fs.FileMode) fs.FileMode { return m | m&0o444>>2 }
	case patch.ModePlain:
		return func(m fs.FileMode) fs.FileMode { return m &^ 0o111 }
	}
	return nil
}
