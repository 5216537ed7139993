package git

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // git names blobs so
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"webcodex/internal/fault"
)

// treeDomain separates the identity of a tree from every other hash.
const treeDomain = "webcodex.working-tree.v1\x00"

// Tree is the identity of a working tree: of the names, modes and contents of all files that
// are tracked, or that no rule ignores. Whether they are staged or committed plays no part, so
// a commit of what was there leaves it as it is. Contents of tracked files that git takes for
// unchanged come from the index; the others are hashed as git would.
type Tree struct {
	repo  *Repo
	dirty []string // raw paths to be looked at on the disk
	bytes int64
	wide  bool // object ids are SHA-256
	// reason: why there is no identity; empty: none yet.
	reason string
}

// Reasons for a tree without an identity.
const (
	TreeTooLarge   = "tree_too_large"
	TreeSubmodules = "submodules"        // their state is not looked into
	TreeNested     = "nested_repository" // an untracked one: git does not list what is in it
	TreeUnreadable = "tree_unreadable"
)

// NewTree begins one; give it all that Status hands out, then ask for its Hash.
func (r *Repo) NewTree() *Tree { return &Tree{repo: r} }

// Add takes an entry of Status.
func (t *Tree) Add(e StatusEntry) {
	switch {
	case t.reason != "":
	case e.Untracked && strings.HasSuffix(e.Path, "/"):
		t.reason = TreeNested
	case e.Untracked, e.Conflicted, e.Unstaged != "":
		t.dirty = append(t.dirty, e.Path)
		if e.Orig != "" {
			t.dirty = append(t.dirty, e.Orig)
		}
	}
	if len(t.dirty) > maxTreeDirty {
		t.reason = TreeTooLarge
	}
}

// errNoTree ends the reading of an index that gives no identity.
var errNoTree = errors.New("no identity")

// Hash is the identity in lowercase hex, or empty with the reason why there is none. An error
// is of git, or of the context.
func (t *Tree) Hash(ctx context.Context) (id, reason string, err error) {
	if t.reason != "" {
		return "", t.reason, nil
	}
	slices.Sort(t.dirty)
	t.dirty = slices.Compact(t.dirty)
	files, err := t.index(ctx)
	if err == nil {
		var here []treeFile
		here, err = t.look(ctx)
		files = append(files, here...)
	}
	switch {
	case errors.Is(err, errNoTree):
		return "", t.reason, nil
	case err != nil:
		return "", "", err
	}
	slices.SortFunc(files, func(a, b treeFile) int { return cmp.Compare(a.path, b.path) })
	h := sha256.New()
	io.WriteString(h, treeDomain)
	for _, f := range files {
		fmt.Fprintf(h, "%s %s %d\x00%s\x00", f.mode, f.id, len(f.path), f.path)
	}
	return hex.EncodeToString(h.Sum(nil)), "", nil
}

type treeFile struct{ path, mode, id string }

// index lists the tracked files that are as staged.
func (t *Tree) index(ctx context.Context) ([]treeFile, error) {
	var files []treeFile
	size := 0
	err := t.repo.git(ctx, records(func(rec []byte) error {
		head, path, ok := bytes.Cut(rec, []byte("\t"))
		f := bytes.Fields(head)
		if !ok || len(f) != 3 || len(path) == 0 {
			return fault.New(fault.GitFailed, "git's index listing could not be read")
		}
		t.wide = len(f[1]) == 2*sha256.Size
		if string(f[0]) == "160000" {
			t.reason = TreeSubmodules
			return errNoTree
		}
		if size += len(rec); size > maxTreeIndex {
			t.reason = TreeTooLarge
			return errNoTree
		}
		if _, dirty := slices.BinarySearch(t.dirty, string(path)); !dirty {
			files = append(files, treeFile{string(path), string(f[0]), string(f[1])})
		}
		return nil
	}), "ls-files", "--stage", "-z")
	if errors.Is(err, errNoTree) {
		return nil, err
	}
	return files, t.repo.failed(err)
}

// look reads what is on the disk in the place of files that are not as staged.
func (t *Tree) look(ctx context.Context) ([]treeFile, error) {
	var files []treeFile
	for _, p := range t.dirty {
		if err := ctx.Err(); err != nil {
			return nil, timedOut(err)
		}
		f, err := t.file(p)
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted
			continue
		case errors.Is(err, errNoTree):
			return nil, err
		case err != nil:
			t.reason = TreeUnreadable
			return nil, errNoTree
		}
		files = append(files, f)
	}
	return files, nil
}

func (t *Tree) file(p string) (treeFile, error) {
	info, err := t.repo.root.Lstat(p)
	if err != nil {
		return treeFile{}, err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		to, err := t.repo.root.Readlink(p)
		if err != nil {
			return treeFile{}, err
		}
		id, err := t.blob(strings.NewReader(to), int64(len(to)))
		return treeFile{p, "120000", id}, err
	case !info.Mode().IsRegular():
		return treeFile{}, fs.ErrNotExist // nothing that git would take
	}
	f, err := t.repo.root.OpenFile(p, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return treeFile{}, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return treeFile{}, cmp.Or(err, fs.ErrInvalid)
	}
	mode := "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	id, err := t.blob(f, info.Size())
	return treeFile{p, mode, id}, err
}

// blob is the id that git would give a content of that size; one that changes while it is read
// has none.
func (t *Tree) blob(in io.Reader, size int64) (string, error) {
	if t.bytes += size; t.bytes > maxTreeBytes {
		t.reason = TreeTooLarge
		return "", errNoTree
	}
	var h hash.Hash = sha1.New() //nolint:gosec // see above
	if t.wide {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", size)
	n, err := io.Copy(h, io.LimitReader(in, size+1))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return hex.EncodeToString(h.Sum(nil)), err
}
