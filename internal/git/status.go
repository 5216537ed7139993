package git

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"webcodex/internal/fault"
)

// Head is where a repository stands.
type Head struct {
	Commit   string // full id, empty before the first commit
	Branch   string // empty when detached
	Detached bool
	Unborn   bool // no commit yet
	Upstream string
	// Ahead and Behind the upstream; nil where there is none or it is gone.
	Ahead, Behind *int
}

// Changes of one side of a status entry or of a diffed file.
const (
	Added       = "added"
	Modified    = "modified"
	Deleted     = "deleted"
	Renamed     = "renamed"
	Copied      = "copied"
	TypeChanged = "type_changed"
	Unmerged    = "unmerged"
)

var changes = map[byte]string{'A': Added, 'M': Modified, 'D': Deleted, 'R': Renamed, 'C': Copied, 'T': TypeChanged, 'U': Unmerged}

// StatusEntry is one changed, conflicted or untracked file; paths are raw bytes.
type StatusEntry struct {
	Path, Orig            string
	Staged, Unstaged      string // a change, or empty
	Untracked, Conflicted bool
}

// Status tells where HEAD is and hands out every changed and untracked file in git's order.
// Submodules are not looked into and their changes not shown. An error of each ends it and
// comes back.
func (r *Repo) Status(ctx context.Context, each func(StatusEntry) error) (Head, error) {
	var h Head
	var renamed *StatusEntry
	err := r.git(ctx, records(func(rec []byte) error {
		if renamed != nil {
			e := *renamed
			e.Orig, renamed = string(rec), nil
			return each(e)
		}
		if bytes.HasPrefix(rec, []byte("# ")) {
			h.header(string(rec[2:]))
			return nil
		}
		e, hasOrig, ok := statusEntry(rec)
		if !ok {
			return fault.New(fault.GitFailed, "git's status could not be read")
		}
		if hasOrig {
			renamed = &e
			return nil
		}
		return each(e)
	}), "status", "--porcelain=v2", "-z", "--branch", "--ahead-behind", "--untracked-files=all",
		"--ignored=no", "--ignore-submodules=all", "--find-renames")
	if err == nil && renamed != nil {
		err = fault.New(fault.GitFailed, "git's status ended in the middle of an entry")
	}
	return h, r.failed(err)
}

func (h *Head) header(line string) {
	name, value, _ := strings.Cut(line, " ")
	switch name {
	case "branch.oid":
		if h.Unborn = value == "(initial)"; !h.Unborn {
			h.Commit = value
		}
	case "branch.head":
		if h.Detached = value == "(detached)"; !h.Detached {
			h.Branch = value
		}
	case "branch.upstream":
		h.Upstream = value
	case "branch.ab":
		a, b, _ := strings.Cut(value, " ")
		ahead, err1 := strconv.Atoi(a)
		behind, err2 := strconv.Atoi(b)
		if err1 == nil && err2 == nil {
			behind = -behind
			h.Ahead, h.Behind = &ahead, &behind
		}
	}
}

// statusEntry reads one record of porcelain v2; with orig, the next record is the old name.
func statusEntry(rec []byte) (e StatusEntry, orig, ok bool) {
	if len(rec) < 3 || rec[1] != ' ' {
		return e, false, false
	}
	fields := map[byte]int{'1': 8, '2': 9, 'u': 10, '?': 1}[rec[0]]
	parts := bytes.SplitN(rec, []byte(" "), fields+1)
	if fields == 0 || len(parts) != fields+1 || len(parts[fields]) == 0 {
		return e, false, false
	}
	e.Path = string(parts[fields])
	switch rec[0] {
	case '?':
		e.Untracked = true
	case 'u':
		e.Conflicted = true
	default:
		if len(parts[1]) != 2 {
			return e, false, false
		}
		e.Staged, e.Unstaged = changes[parts[1][0]], changes[parts[1][1]]
	}
	return e, rec[0] == '2', true
}
