package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// plan is a checked transaction. Its trees hold the directories of all steps open.
type plan struct {
	p         *runner.Project
	trees     []*tree
	steps     []step
	files     []wire.ChangedFile
	conflicts []wire.EditConflict
	held      int64 // bytes in memory
	applied   int   // changes that change something
}

func (pl *plan) close() {
	for _, t := range pl.trees {
		t.close()
	}
}

func (pl *plan) tree() *tree {
	t := newTree(pl.p.Root)
	pl.trees = append(pl.trees, t)
	return t
}

// edit answers edit_project_files.
func (s *service) edit(ctx context.Context, p *runner.Project, in wire.EditFilesIn) (wire.EditFilesOut, error) {
	if err := in.Check(); err != nil {
		return wire.EditFilesOut{}, err
	}
	defer s.exclusive(p.Root, p.Fingerprint)()
	pl := &plan{p: p}
	defer pl.close()
	if err := pl.make(ctx, in.Changes); err != nil {
		return wire.EditFilesOut{}, err
	}
	if err := s.transact(ctx, p, pl.steps); err != nil {
		return wire.EditFilesOut{}, err
	}
	return wire.EditFilesOut{Files: pl.files, Changed: pl.applied > 0, AppliedCount: pl.applied, ChangedPaths: pl.changedPaths()}, nil
}

// preview answers it for a dry run.
func (s *service) preview(ctx context.Context, p *runner.Project, in wire.EditFilesIn) (wire.EditFilesOut, error) {
	if err := in.Check(); err != nil {
		return wire.EditFilesOut{}, err
	}
	pl := &plan{p: p}
	defer pl.close()
	if err := pl.make(ctx, in.Changes); err != nil {
		return wire.EditFilesOut{}, err
	}
	would := pl.applied > 0
	return wire.EditFilesOut{DryRun: true, WouldChange: &would, Files: pl.files, ChangedPaths: []string{}}, nil
}

// make plans all changes; nothing is written yet.
func (pl *plan) make(ctx context.Context, changes []wire.Change) error {
	for i, c := range changes {
		if ctx.Err() != nil {
			return timedOut(ctx)
		}
		if err := pl.add(i, c); err != nil {
			return err
		}
	}
	if len(pl.conflicts) > 0 {
		return conflicted(pl.conflicts)
	}
	return pl.distinct()
}

func (pl *plan) changedPaths() []string {
	out := []string{}
	for _, st := range pl.steps {
		out = append(out, st.paths()...)
	}
	return out
}

// conflicted is the one answer for stale and ambiguous edits.
func conflicted(list []wire.EditConflict) error {
	return fault.New(fault.EditConflict, "%d of the edits do not fit the files as they are; nothing was changed", len(list)).
		With("conflict_kind", list[0].Kind).With("conflicts", list).
		WithNext("read the files again and build the edits from what they hold now")
}

// add checks one change against the files and plans it. Conflicts are collected, so that one
// answer tells all of them; anything else ends the planning.
func (pl *plan) add(i int, c wire.Change) error {
	field := fmt.Sprintf("changes[%d].path", i)
	if c.Kind == wire.ChangeCreate {
		return pl.addCreate(i, c, field)
	}
	t := pl.tree()
	parts, err := relpath.SplitFile(c.Path)
	if err != nil {
		return at(err, field)
	}
	where, err := t.find(parts, finding{follow: c.Kind == wire.ChangeEdit})
	if err != nil {
		return at(err, field)
	}
	before, sum, err := pl.load(&where, c.Kind == wire.ChangeEdit)
	if err != nil {
		return at(err, field)
	}
	if c.ExpectedSHA256 != "" && !strings.EqualFold(c.ExpectedSHA256, sum) {
		pl.conflicts = append(pl.conflicts, wire.EditConflict{Change: i, Path: where.path, Kind: wire.SHA256Mismatch, ActualSHA256: sum})
		return nil
	}
	file := wire.ChangedFile{Path: where.path, Kind: c.Kind, SHA256Before: sum, Bytes: where.info.Size()}
	switch c.Kind {
	case wire.ChangeEdit:
		return pl.addEdit(i, c, where, before, file, field)
	case wire.ChangeDelete:
		file.Bytes = 0
		pl.plan(file, step{&remove{at: where}, i, field})
		return nil
	}
	return pl.addRename(i, c, where, file)
}

func (pl *plan) plan(file wire.ChangedFile, st step) {
	pl.files, pl.steps = append(pl.files, file), append(pl.steps, st)
	pl.applied++
}

func (pl *plan) addEdit(i int, c wire.Change, where place, before []byte, file wire.ChangedFile, field string) error {
	after, conflicts := applyEdits(before, c.Edits)
	for _, k := range conflicts {
		n := k.edit
		w := wire.EditConflict{Change: i, Edit: &n, Path: where.path, Kind: k.kind}
		if k.kind != wire.OverlappingEdits {
			m := k.matches
			w.Matches = &m
			w.ActualSHA256 = file.SHA256Before
		}
		pl.conflicts = append(pl.conflicts, w)
	}
	if len(conflicts) > 0 {
		return nil
	}
	if pl.held += int64(len(after)); len(after) > maxEditBytes || pl.held > maxTransaction {
		return at(badPath(reasonTooLarge, nil), field)
	}
	file.SHA256After, file.Bytes = hashOf(after), int64(len(after))
	if bytes.Equal(before, after) {
		pl.files = append(pl.files, file)
		return nil
	}
	pl.plan(file, step{&replace{at: where, before: before, after: after}, i, field})
	return nil
}

func (pl *plan) addCreate(i int, c wire.Change, field string) error {
	t := pl.tree()
	where, err := vacant(t, c.Path)
	if err != nil {
		return at(err, field)
	}
	content := []byte(*c.Content)
	pl.plan(wire.ChangedFile{Path: where.path, Kind: c.Kind, SHA256After: hashOf(content), Bytes: int64(len(content))},
		step{&create{tree: t, at: where, content: content}, i, field})
	return nil
}

func (pl *plan) addRename(i int, c wire.Change, from place, file wire.ChangedFile) error {
	field := fmt.Sprintf("changes[%d].to_path", i)
	t := pl.tree()
	to, err := vacant(t, c.ToPath)
	if err != nil {
		return at(err, field)
	}
	file.ToPath, file.SHA256After = to.path, file.SHA256Before
	pl.plan(file, step{&rename{from: from, to: to, tree: t}, i, field})
	return nil
}

// vacant is a place where nothing is.
func vacant(t *tree, path string) (place, error) {
	parts, err := relpath.SplitFile(path)
	if err != nil {
		return place{}, err
	}
	where, err := t.find(parts, finding{create: true})
	if err != nil {
		return place{}, err
	}
	if where.info == nil {
		return where, nil
	}
	if where.info.Mode()&fs.ModeSymlink != 0 {
		// A link to nowhere is no vacant name either: what is behind it may be outside.
		if _, err := t.find(parts, finding{follow: true, create: true}); err != nil {
			return place{}, err
		}
	}
	return place{}, badPath(reasonExists, nil)
}

// load reads a file that is about to be changed and refuses what must not be.
func (pl *plan) load(where *place, content bool) ([]byte, string, error) {
	f, info, err := where.open()
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	where.info = info
	if !content {
		sum, err := hashFile(f)
		return nil, sum, err
	}
	switch {
	case hardLinked(info):
		return nil, "", badPath(reasonHardLink, nil)
	case info.Mode()&0o222 == 0:
		return nil, "", badPath(reasonReadOnly, nil)
	}
	return pl.content(f, info)
}

// content is the text of a file that is open.
func (pl *plan) content(f io.Reader, info fs.FileInfo) ([]byte, string, error) {
	if info.Size() > maxEditBytes {
		return nil, "", badPath(reasonTooLarge, nil)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEditBytes+1))
	if err != nil {
		return nil, "", walkFault(err)
	}
	if pl.held += int64(len(data)); len(data) > maxEditBytes || pl.held > maxTransaction {
		return nil, "", badPath(reasonTooLarge, nil)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, "", badPath(reasonBinary, nil)
	}
	return data, hashOf(data), nil
}

func hashFile(r io.Reader) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, maxReadBytes+1))
	if err != nil {
		return "", walkFault(err)
	}
	if n > maxReadBytes {
		return "", badPath(reasonTooLarge, nil)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// distinct refuses a transaction that names one file twice, links resolved.
func (pl *plan) distinct() error {
	var all []wire.Target
	for _, st := range pl.steps {
		for _, p := range st.paths() {
			all = append(all, wire.Target{Change: st.index, Path: p, Field: st.field})
		}
	}
	return wire.Distinct(all)
}
