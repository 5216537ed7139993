package checkpoint

import (
	"slices"

	"webcodex/internal/git"
)

// aim is what a checkpoint wants at a path: a kept content, nothing, or what its HEAD has there.
type aim struct {
	Path string
	Mode string // empty: nothing is to be there
	ID   string // of the blob
	// Kept is its own, byte for byte; else it is HEAD's, as a checkout would write it.
	Kept bool
}

// facts are what a plan is made of; reading them changes nothing.
type facts struct {
	now       git.Survey
	kept      map[string]git.Entry // by path
	deleted   []string
	passed    []git.Passed
	untracked bool
	// moved is what the checkpoint's HEAD has at paths that the two HEADs differ in.
	moved map[string]git.Entry
	// head is what the checkpoint's HEAD has at the paths that asks gave.
	head map[string]git.Entry
}

// asks are the paths that a plan needs to know of the checkpoint's HEAD: they differ from HEAD now,
// and did not then.
func (f facts) asks() []string {
	gone := set(f.deleted)
	var out []string
	for _, n := range f.now.Found {
		if _, kept := f.kept[n.Path]; kept || gone[n.Path] {
			continue
		}
		if _, known := f.moved[n.Path]; !known {
			out = append(out, n.Path)
		}
	}
	return out
}

// aims gives what has to be looked at for a restore, by path, and what is left as it is.
func (f facts) aims() (out []aim, left []git.Passed) {
	gone, seen := set(f.deleted), map[string]bool{}
	skip := map[string]string{}
	for _, p := range append(slices.Clone(f.passed), f.now.Passed...) {
		skip[p.Path] = p.Reason
	}
	add := func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		if reason, passed := skip[path]; passed {
			left = append(left, git.Passed{Path: path, Reason: reason})
			return
		}
		if reason := git.Usable(path); reason != "" {
			shown, _ := git.Show(path)
			left = append(left, git.Passed{Path: shown, Reason: reason})
			return
		}
		if k, kept := f.kept[path]; kept {
			out = append(out, aim{path, k.Mode, k.ID, true})
			return
		}
		if gone[path] {
			out = append(out, aim{Path: path})
			return
		}
		e, known := f.moved[path]
		if !known {
			e = f.head[path]
		}
		switch e.Mode {
		case git.ModeFile, git.ModeProgram, git.ModeLink:
			out = append(out, aim{path, e.Mode, e.ID, false})
		case "":
			if !f.untracked {
				return // it may have been there untracked, which the checkpoint does not tell
			}
			out = append(out, aim{Path: path})
		default:
			left = append(left, git.Passed{Path: path, Reason: git.PassedModule})
		}
	}
	for path := range f.kept {
		add(path)
	}
	for _, path := range f.deleted {
		add(path)
	}
	for path := range f.moved {
		add(path)
	}
	for _, n := range f.now.Found {
		add(n.Path)
	}
	slices.SortFunc(out, func(a, b aim) int { return compare(a.Path, b.Path) })
	slices.SortFunc(left, func(a, b git.Passed) int { return compare(a.Path, b.Path) })
	return out, left
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func set(list []string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return m
}
