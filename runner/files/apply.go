package files

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner"
)

// Changer makes changes of many files for others than a caller's edit, under the same lock and by
// the same transaction.
type Changer struct{ s *service }

// Wanted is what is to be at a path.
type Wanted struct {
	Path string
	Gone bool // nothing
	// Content of a regular file, or where a symbolic link leads.
	Content []byte
	Link    bool
	Program bool // its owner may execute it
}

// Exclusive keeps others from changing files of a Project by us until the function that it gives is
// called.
func (c Changer) Exclusive(p *runner.Project) func() { return c.s.exclusive(p.Root, p.Fingerprint) }

// Apply makes all paths what they are wanted to be, or leaves all as they are; the caller holds
// Exclusive. A path goes through no symbolic link, below nothing of git's, and over no directory.
// Errors: as of an edit; a conflict where somebody else changed a file after it was looked at.
func (c Changer) Apply(ctx context.Context, p *runner.Project, wanted []Wanted) (changed []string, err error) {
	if len(wanted) > MaxWanted {
		return nil, fault.New(fault.CapacityReached, "more than %d files would have to be changed", MaxWanted)
	}
	pl := &plan{p: p}
	defer pl.close()
	trees := map[string]*tree{}
	for i, w := range wanted {
		if ctx.Err() != nil {
			return nil, timedOut(ctx)
		}
		if err := pl.want(i, w, trees); err != nil {
			return nil, at(err, fmt.Sprintf("paths[%d]", i))
		}
	}
	if err := c.s.transact(ctx, p, pl.steps); err != nil {
		return nil, err
	}
	for _, w := range wanted {
		changed = append(changed, w.Path)
	}
	return changed, nil
}

// want plans one path.
func (pl *plan) want(i int, w Wanted, trees map[string]*tree) error {
	parts, err := relpath.SplitFile(w.Path)
	if err != nil {
		return err
	}
	// Paths of one directory share what is open of it, unless it has to be made.
	dir := strings.Join(parts[:len(parts)-1], "/")
	t := trees[dir]
	if t == nil {
		t = pl.tree()
	}
	where, err := t.find(parts, finding{create: true})
	if err != nil {
		return err
	}
	if len(where.missing) == 0 {
		trees[dir] = t
	}
	if where.path != w.Path || where.name == "." {
		return badPath(reasonSymlink, nil) // a link on the way leads elsewhere
	}
	add := func(a action) { pl.steps = append(pl.steps, step{action: a, index: i, field: "paths"}) }
	switch there := where.info; {
	case there != nil && !there.Mode().IsRegular() && there.Mode()&fs.ModeSymlink == 0:
		return badPath(reasonNotRegular, nil)
	case w.Gone:
		if there != nil {
			add(&remove{at: where})
		}
		return nil
	case there == nil:
		add(&create{tree: t, at: where, content: w.Content, link: w.Link, mode: w.mode})
		return nil
	case there.Mode().IsRegular() && !w.Link:
		before, err := t.content(where)
		if err != nil {
			return err
		}
		add(&replace{at: where, before: before, after: w.Content, mode: w.mode(there.Mode().Perm())})
		return nil
	}
	add(&remove{at: where})
	add(&create{tree: t, at: where, content: w.Content, link: w.Link, mode: w.mode})
	return nil
}

// content is what is in a file now: the way back where the system cannot exchange two names.
func (t *tree) content(where place) ([]byte, error) {
	f, _, err := where.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, where.info.Size())
	if _, err := f.ReadAt(b, 0); err != nil && where.info.Size() > 0 {
		return nil, badPath(reasonChanged, err)
	}
	return b, nil
}

// mode gives permissions the execute bits that go with their read bits, or takes them away.
func (w Wanted) mode(perm fs.FileMode) fs.FileMode {
	if w.Program {
		return perm | perm&0o444>>2
	}
	return perm &^ 0o111
}
