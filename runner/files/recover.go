package files

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"webcodex/internal/fault"
	"webcodex/runner"
)

// recover ends what a killed life left half-done in a Project, before it is served: a change
// of which every step was made is finished, any other is taken back. What somebody put in the
// place of our files meanwhile stays. A note whose change could not be ended stays too, for
// the next time.
func (s *service) recover(p *runner.Project) error {
	paths, err := s.notes.all()
	if err != nil {
		return err
	}
	var failed error
	for _, path := range paths {
		st, err := readStory(path)
		switch {
		case errors.Is(err, errUntold):
		case err != nil:
			failed = errors.Join(failed, err)
			continue
		case st.Project != string(p.ID) || st.Root != p.Fingerprint:
			continue
		case st.Version != noteVersion:
			failed = errors.Join(failed, fmt.Errorf("a note of version %d", st.Version))
			continue
		default:
			if err := end(p, st); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
		}
		failed = errors.Join(failed, os.Remove(path))
	}
	return failed
}

// end finishes or takes back one transaction.
func end(p *runner.Project, st story) error {
	pl := &plan{p: p}
	defer pl.close()
	var steps []step
	for i, n := range st.Steps {
		a, err := pl.again(n)
		if err != nil {
			return err
		}
		if a == nil {
			continue // the directory is gone, and all in it
		}
		if st.staged != nil {
			known(a, st.staged[i])
		}
		steps = append(steps, step{action: a, index: i})
	}
	if st.committed {
		return settle(steps)
	}
	_, err := takeBack(steps)
	return err
}

// known tells an action which file is its own.
func known(a action, id identity) {
	switch a := a.(type) {
	case *replace:
		a.mine = id
	case *create:
		a.mine = id
	}
}

// again is the action of a note, nil where its directory is no longer there.
func (pl *plan) again(n stepNote) (action, error) {
	at, t, made, err := pl.back(n.At)
	if err != nil {
		return nil, err
	}
	switch n.Kind {
	case noteReplace:
		if at.dir != nil {
			return &replace{at: at, temp: n.Temp, backup: n.Backup}, nil
		}
	case noteCreate:
		if at.dir != nil || len(made) > 0 {
			return &create{tree: t, at: at, temp: n.Temp, made: made}, nil
		}
	case noteRemove:
		if at.dir != nil {
			return &remove{at: at, backup: n.Backup}, nil
		}
	case noteRename:
		if n.To == nil {
			return nil, errors.New("a note of a rename says not where to")
		}
		to, t, made, err := pl.back(*n.To)
		if err != nil || at.dir == nil || to.dir == nil && len(made) == 0 {
			return nil, err
		}
		return &rename{from: at, to: to, tree: t, moved: n.Moved, made: made}, nil
	default:
		return nil, fmt.Errorf("a note knows a step %q", n.Kind)
	}
	return nil, nil
}

// back walks to a place that a note names, and gives the directories that the step made on
// the way. Without a directory to be in, the place has none.
func (pl *plan) back(sp spot) (place, *tree, []madeDir, error) {
	parts := fields(string(sp.Path))
	before := len(parts) - 1
	if before < 0 || sp.Missing < 0 || sp.Missing > before {
		return place{}, nil, nil, errors.New("a note names no place")
	}
	p := place{name: parts[before], path: string(sp.Path)}
	t := pl.tree()
	for depth := before; depth >= before-sp.Missing; depth-- {
		dir, path, err := t.directory(parts[:depth])
		if f := fault.As(err); f != nil {
			switch f.Reason {
			case reasonNotFound, reasonNotDirectory, reasonSymlinkOutside, reasonSymlinkLoop, reasonGitInternal:
				continue
			}
			return place{}, nil, nil, err
		}
		if path != strings.Join(parts[:depth], "/") {
			return place{}, t, nil, nil // a link took a directory's place
		}
		var made []madeDir
		for i := before - sp.Missing; i < depth; i++ {
			in := pl.p.Root
			if i > 0 {
				in = t.dirs[i-1]
			}
			made = append(made, madeDir{in, parts[i]})
		}
		if p.dir = dir; depth < before {
			p.dir, p.missing = nil, parts[depth:before]
		}
		return p, t, made, nil
	}
	return place{}, t, nil, nil
}
