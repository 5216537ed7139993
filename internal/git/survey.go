package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/relpath"
)

// Modes of what is found in a working tree, as git writes them; empty where nothing is.
const (
	ModeFile    = "100644"
	ModeProgram = "100755"
	ModeLink    = "120000"
)

// Found is one path of a working tree that is not as HEAD has it, with what is there.
type Found struct {
	Path string // UTF-8, in its shortest spelling, nothing of git's own
	Mode string // empty: nothing is there
	// Content is the file's bytes or where the link leads; nothing converts them.
	Content   []byte
	Untracked bool
}

// Passed is a path that a survey does not look into, and a fixed word for why. Its name is shown
// as Show gives it.
type Passed struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Reasons of Passed.
const (
	PassedNested   = "nested_repository"
	PassedName     = "unsupported_name"
	PassedGit      = "git_internal"
	PassedKind     = "not_regular"
	PassedLarge    = "too_large"
	PassedBudget   = "budget_exceeded"
	PassedUnread   = "unreadable"
	PassedFilter   = "content_filter"
	PassedModule   = "submodule"
	PassedPlace    = "in_the_way" // a directory where a file would be, or no directory before it
	PassedUnstable = "changed_meanwhile"
)

// SurveyLimits bound a survey: paths that differ, bytes of one file and of all.
type SurveyLimits struct {
	Paths      int
	File, Size int64
}

// Survey is a working tree by what differs from HEAD. Whether a change is staged plays no part.
type Survey struct {
	Head   Head
	Found  []Found // by path
	Passed []Passed
	Size   int64
	// State is the same as long as HEAD and all that was found are: 64 hex digits.
	State string
}

const stateDomain = "webcodex.workspace-state.v1\x00"

// errFull ends a survey that finds more than it may.
var errFull = errors.New("too many paths")

// Survey looks at every path that is not as HEAD has it. It changes nothing and runs nothing of
// the repository. Error: capacity_reached where more paths differ than limits allow.
func (r *Repo) Survey(ctx context.Context, limits SurveyLimits) (Survey, error) {
	s := &surveyor{repo: r, limits: limits, plain: map[string]bool{".": true}}
	paths := map[string]bool{} // to whether it is untracked
	head, err := r.Status(ctx, func(e StatusEntry) error {
		if e.Untracked && strings.HasSuffix(e.Path, "/") {
			s.pass(e.Path, PassedNested)
			return nil
		}
		paths[e.Path] = e.Untracked
		if e.Orig != "" {
			if _, named := paths[e.Orig]; !named {
				paths[e.Orig] = false
			}
		}
		if len(paths) > limits.Paths {
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return Survey{}, fault.New(fault.CapacityReached, "more than %d files differ from the last commit", limits.Paths).
			WithReason("too_many_files").WithNext("commit some of them, or let .gitignore name what needs no keeping")
	}
	if err != nil {
		return Survey{}, err
	}
	s.out.Head = head
	for p, untracked := range paths {
		s.order = append(s.order, Found{Path: p, Untracked: untracked})
	}
	slices.SortFunc(s.order, func(a, b Found) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range s.order {
		if err := ctx.Err(); err != nil {
			return Survey{}, timedOut(err)
		}
		s.look(f)
	}
	s.out.State = s.state()
	return s.out, nil
}

type surveyor struct {
	repo   *Repo
	limits SurveyLimits
	order  []Found
	plain  map[string]bool // directories that are directories, all the way up
	out    Survey
}

func (s *surveyor) pass(p, reason string) {
	shown, _ := Show(p)
	s.out.Passed = append(s.out.Passed, Passed{Path: shown, Reason: reason})
}

// Usable reports whether a path may be written by its own text; else why not.
func Usable(p string) (reason string) {
	parts, err := relpath.SplitFile(p)
	switch {
	case Internal(p):
		return PassedGit
	case err != nil || strings.Join(parts, "/") != p:
		return PassedName
	}
	return ""
}

func (s *surveyor) look(f Found) {
	if reason := Usable(f.Path); reason != "" {
		s.pass(f.Path, reason)
		return
	}
	if !s.below(path.Dir(f.Path)) {
		s.out.Found = append(s.out.Found, f) // a link or a file took its directory's place
		return
	}
	reason, err := s.read(&f)
	switch {
	case err != nil:
		s.pass(f.Path, PassedUnread)
	case reason != "":
		s.pass(f.Path, reason)
	default:
		s.out.Size += int64(len(f.Content))
		s.out.Found = append(s.out.Found, f)
	}
}

// below reports that a directory and all before it are directories and no links.
func (s *surveyor) below(dir string) bool {
	known, ok := s.plain[dir]
	if ok {
		return known
	}
	if known = s.below(path.Dir(dir)); known {
		info, err := s.repo.root.Lstat(dir)
		known = err == nil && info.IsDir()
	}
	s.plain[dir] = known
	return known
}

// read fills in what is at a path.
func (s *surveyor) read(f *Found) (reason string, err error) {
	root := s.repo.root
	info, err := root.Lstat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir():
		return "", nil
	case err != nil:
		return "", err
	case info.Mode()&os.ModeSymlink != 0:
		to, err := root.Readlink(f.Path)
		f.Mode, f.Content = ModeLink, []byte(to)
		return "", err
	case !info.Mode().IsRegular():
		return PassedKind, nil
	case info.Size() > s.limits.File:
		return PassedLarge, nil
	case s.out.Size+info.Size() > s.limits.Size:
		return PassedBudget, nil
	}
	in, err := root.OpenFile(f.Path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if info, err = in.Stat(); err != nil || !info.Mode().IsRegular() {
		return PassedKind, err
	}
	f.Content, err = io.ReadAll(io.LimitReader(in, info.Size()+1))
	if err == nil && int64(len(f.Content)) != info.Size() {
		return PassedUnstable, nil
	}
	if f.Mode = ModeFile; info.Mode()&0o100 != 0 {
		f.Mode = ModeProgram
	}
	return "", err
}

func (s *surveyor) state() string {
	h := sha256.New()
	io.WriteString(h, stateDomain)
	fmt.Fprintf(h, "%s\x00", s.out.Head.Commit)
	for _, f := range s.out.Found {
		fmt.Fprintf(h, "%s %x %d\x00%s\x00", f.Mode, sha256.Sum256(f.Content), len(f.Path), f.Path)
	}
	for _, p := range s.out.Passed {
		fmt.Fprintf(h, "%s %d\x00%s\x00", p.Reason, len(p.Path), p.Path)
	}
	return hex.EncodeToString(h.Sum(nil))
}
