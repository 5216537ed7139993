package git

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"webcodex/internal/fault"
)

// Object is one that git keeps, as it is kept.
type Object struct {
	ID, Type string
	Content  []byte
}

// Objects hands out objects by their full ids, in that order; a missing one, and one of more than
// most bytes, is a failure.
func (r *Repo) Objects(ctx context.Context, ids []string, most int64, each func(Object) error) error {
	if len(ids) == 0 {
		return nil
	}
	bad := fault.New(fault.GitFailed, "an object of the repository is missing, or larger than is read")
	return r.failed(r.feed(ctx, strings.NewReader(strings.Join(ids, "\n")+"\n"), func(in io.Reader) error {
		b := bufio.NewReader(in)
		for _, id := range ids {
			line, err := b.ReadString('\n')
			f := strings.Fields(line)
			if err != nil || len(f) != 3 || f[0] != id {
				return bad
			}
			size, err := strconv.ParseInt(f[2], 10, 64)
			if err != nil || size > most {
				return bad
			}
			o := Object{ID: id, Type: f[1], Content: make([]byte, size)}
			if _, err := io.ReadFull(b, o.Content); err != nil {
				return bad
			}
			if _, err := b.Discard(1); err != nil {
				return bad
			}
			if err := each(o); err != nil {
				return err
			}
		}
		return nil
	}, "cat-file", "--batch"))
}

// Entry is one file of a tree. Path is raw bytes.
type Entry struct{ Path, Mode, ID string }

// Under hands out the files of a commit below a directory, their paths without it; "" is all.
func (r *Repo) Under(ctx context.Context, commit, dir string, each func(Entry) error) error {
	return r.failed(r.git(ctx, records(treeEntry(func(e Entry) error {
		p, ok := strings.CutPrefix(e.Path, dir)
		if !ok {
			return nil
		}
		return each(Entry{Path: p, Mode: e.Mode, ID: e.ID})
	})), "ls-tree", "-r", "-z", "--full-tree", commit, "--", dir))
}

// At hands out what a commit has at paths of files; a path it has no file at is left out.
func (r *Repo) At(ctx context.Context, commit string, paths []string, each func(Entry) error) error {
	for len(paths) > 0 {
		n, size := 0, 0
		for n < len(paths) && (n == 0 || size+len(paths[n]) < maxPathArgs) {
			size += len(paths[n]) + 1
			n++
		}
		err := r.git(ctx, records(treeEntry(each)), append([]string{"ls-tree", "-z", "--full-tree", commit, "--"}, paths[:n]...)...)
		if err != nil {
			return r.failed(err)
		}
		paths = paths[n:]
	}
	return nil
}

// treeEntry reads records of ls-tree; directories in it are passed over.
func treeEntry(each func(Entry) error) func([]byte) error {
	return func(rec []byte) error {
		head, path, ok := bytes.Cut(rec, []byte("\t")) // mode SP type SP object TAB path
		f := strings.Fields(string(head))
		if !ok || len(f) != 3 {
			return fault.New(fault.GitFailed, "git's tree could not be read")
		}
		if f[1] == "tree" {
			return nil
		}
		return each(Entry{Path: string(path), Mode: f[0], ID: f[2]})
	}
}

// Between hands out how to comes to differ from from: each path that does, with what to has there,
// an empty mode for nothing. Both are commits; empty is the empty tree.
func (r *Repo) Between(ctx context.Context, from, to string, each func(Entry) error) error {
	empty, err := r.emptyTree(ctx)
	if err != nil {
		return err
	}
	if from == "" {
		from = empty
	}
	if to == "" {
		to = empty
	}
	var e *Entry
	return r.failed(r.git(ctx, records(func(rec []byte) error {
		if e == nil {
			f := strings.Fields(strings.TrimPrefix(string(rec), ":")) // mode mode id id status
			if len(f) != 5 {
				return fault.New(fault.GitFailed, "git's comparison could not be read")
			}
			e = &Entry{Mode: f[1], ID: f[3]}
			if f[1] == "000000" {
				e.Mode, e.ID = "", ""
			}
			return nil
		}
		out := *e
		out.Path, e = string(rec), nil
		return each(out)
	}), "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", from, to))
}

// Filtered gives those of the paths that a configured content filter makes.
func (r *Repo) Filtered(ctx context.Context, paths []string) (map[string]bool, error) {
	out := map[string]bool{}
	if len(r.filters) == 0 || len(paths) == 0 {
		return out, nil
	}
	configured := map[string]bool{}
	for _, f := range r.filters {
		configured[f] = true
	}
	var rec []string
	err := r.feed(ctx, strings.NewReader(strings.Join(paths, "\x00")+"\x00"), records(func(b []byte) error {
		if rec = append(rec, string(b)); len(rec) < 3 {
			return nil
		}
		if configured[rec[2]] {
			out[rec[0]] = true
		}
		rec = rec[:0]
		return nil
	}), "check-attr", "--stdin", "-z", "filter")
	return out, r.failed(err)
}

// Export writes files as a checkout would, filters off, into a directory outside of the repository,
// under their own paths. It uses an index of its own in there.
func (r *Repo) Export(ctx context.Context, entries []Entry, dir string) error {
	var list bytes.Buffer
	for _, e := range entries {
		list.WriteString(e.Mode + " " + e.ID + "\t" + e.Path + "\x00")
	}
	own := append(append([]string{}, r.env...), "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
	run := func(in io.Reader, args ...string) error {
		return r.failed(r.streamFrom(ctx, in, own, nothing, r.place(args...)...))
	}
	if err := run(&list, "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	return run(nil, "-c", "core.sparseCheckout=false", "checkout-index", "--all", "--quiet", "--prefix="+filepath.Join(dir, "files")+"/")
}

// feed is git with something to read on its standard input.
func (r *Repo) feed(ctx context.Context, in io.Reader, read func(io.Reader) error, args ...string) error {
	return r.streamFrom(ctx, in, r.env, read, r.place(args...)...)
}
