package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"

	"webcodex/internal/fault"
)

// Scope says which two states are compared. Zero: working tree against index.
type Scope struct {
	Paths  []string // exact names of files or directories; none: all
	Cached bool     // index against HEAD
	// AgainstHead compares the working tree with HEAD (the empty tree before the first commit).
	AgainstHead bool
	// Base and Head are full commit ids, compared with each other.
	Base, Head string
}

// Enough, returned by a reader of Patch, ends the reading early and is no error.
var Enough = errors.New("enough was read")

// diffFlags pin the form of a diff against every setting of a repository or user, and keep it
// from running external differs, text converters and submodules.
var diffFlags = []string{
	"--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--submodule=short",
	"--no-color", "--no-color-moved", "--ws-error-highlight=none", "--no-relative", "--src-prefix=a/", "--dst-prefix=b/",
	"--find-renames", "-l" + renameLimit, "--diff-algorithm=myers", "--indent-heuristic",
}

// patchFlags pin the text of a patch.
var patchFlags = []string{
	"--patch", "--abbrev=12", "--unified=3", "--inter-hunk-context=0",
	"--output-indicator-new=+", "--output-indicator-old=-", "--output-indicator-context= ",
}

var fullID = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// ValidID reports whether s is a full object id in lowercase hex.
func ValidID(s string) bool { return fullID.MatchString(s) }

func (r *Repo) diffArgs(ctx context.Context, s Scope, form ...string) ([]string, error) {
	args := append(append([]string{"diff"}, diffFlags...), form...)
	switch {
	case s.Cached:
		args = append(args, "--cached")
	case s.AgainstHead:
		tree, err := r.headTree(ctx)
		if err != nil {
			return nil, err
		}
		args = append(args, tree)
	case s.Base != "" || s.Head != "":
		for _, id := range []string{s.Base, s.Head} {
			if !ValidID(id) {
				return nil, fault.New(fault.InvalidArguments, "a commit is named by its full id")
			}
			full, err := r.ResolveCommit(ctx, id)
			if err != nil {
				return nil, err
			}
			args = append(args, full)
		}
	}
	return append(append(args, "--"), s.Paths...), nil
}

// headTree is HEAD, or the empty tree where there is no commit.
func (r *Repo) headTree(ctx context.Context) (string, error) {
	head, err := r.Head(ctx)
	if err != nil || head != "" {
		return head, err
	}
	return r.emptyTree(ctx)
}

// emptyTree is the id of the tree with nothing in it, in the repository's own hash.
func (r *Repo) emptyTree(ctx context.Context) (string, error) {
	out, err := r.output(ctx, r.env, r.place("rev-parse", "--show-object-format")...)
	if err != nil {
		return "", r.failed(err)
	}
	if bytes.HasPrefix(out, []byte("sha256")) {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321", nil
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904", nil
}

// Patch streams unified diff text to read. A reader may return Enough. A line in it that
// names an odd file is C-quoted (see PatchReader).
func (r *Repo) Patch(ctx context.Context, s Scope, read func(io.Reader) error) error {
	args, err := r.diffArgs(ctx, s, patchFlags...)
	if err != nil {
		return err
	}
	err = r.git(ctx, read, args...)
	if errors.Is(err, Enough) {
		return nil
	}
	return r.failed(err)
}

// FileStat is the size of one file's change; paths are raw bytes.
type FileStat struct {
	Path, Orig           string
	Additions, Deletions int
	Binary               bool
}

// Stat hands out the files that differ with their line counts, in git's order. A conflicted
// path may come twice. An error of each ends it.
func (r *Repo) Stat(ctx context.Context, s Scope, each func(FileStat) error) error {
	args, err := r.diffArgs(ctx, s, "--numstat", "-z")
	if err != nil {
		return err
	}
	var f FileStat
	names := 0 // names still to come of a renamed file
	err = r.git(ctx, records(func(rec []byte) error {
		switch names {
		case 2:
			f.Orig, names = string(rec), 1
			return nil
		case 1:
			f.Path, names = string(rec), 0
			return each(f)
		}
		var ok bool
		if f, ok = numstat(rec); !ok {
			return fault.New(fault.GitFailed, "git's statistics could not be read")
		}
		if f.Path == "" {
			names = 2
			return nil
		}
		return each(f)
	}), args...)
	return r.failed(err)
}

func numstat(rec []byte) (f FileStat, ok bool) {
	parts := bytes.SplitN(rec, []byte("\t"), 3)
	if len(parts) != 3 {
		return f, false
	}
	f.Path = string(parts[2])
	if string(parts[0]) == "-" && string(parts[1]) == "-" {
		f.Binary = true
		return f, true
	}
	var err1, err2 error
	f.Additions, err1 = strconv.Atoi(string(parts[0]))
	f.Deletions, err2 = strconv.Atoi(string(parts[1]))
	return f, err1 == nil && err2 == nil
}

// Differing hands out the tracked paths whose working tree content or mode is not as staged,
// and how. Added means that the path is only meant to be added: nothing is staged for it.
func (r *Repo) Differing(ctx context.Context, paths []string, each func(path, change string) error) error {
	args, err := r.diffArgs(ctx, Scope{Paths: paths}, "--name-status", "-z", "--no-renames")
	if err != nil {
		return err
	}
	change := ""
	return r.failed(r.git(ctx, records(func(rec []byte) error {
		if change == "" {
			if len(rec) > 0 {
				change = changes[rec[0]]
			}
			if change == "" {
				return fault.New(fault.GitFailed, "git's list of changes could not be read")
			}
			return nil
		}
		how := change
		change = ""
		return each(string(rec), how)
	}), args...))
}
