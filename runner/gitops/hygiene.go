package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// Kinds of findings. Those of problems are in the list below it.
const (
	foundUnmerged   = "unmerged"
	foundMarker     = "conflict_marker"
	foundSensitive  = "sensitive_file"
	foundLeftover   = "debug_leftover"
	foundTemporary  = "temporary_file"
	foundBuild      = "build_output"
	foundLarge      = "large_file"
	foundBinary     = "binary_file"
	foundNested     = "nested_repository"
	foundWhitespace = "whitespace_error"
	foundOperation  = "operation_in_progress"
)

// problems are findings that are hardly ever meant to stay; the others are warnings.
var problems = []string{foundUnmerged, foundMarker, foundSensitive}

func hygiene(ctx context.Context, p *runner.Project, in wire.HygieneIn) (wire.HygieneOut, error) {
	return with(ctx, p, func(repo *git.Repo) (wire.HygieneOut, error) {
		h := &hygieneLook{root: p.Root, page: pager{limit: clamp(in.MaxFindings, defaultFindings, maxFindings), room: findingsChars},
			out: wire.HygieneOut{Counts: map[string]int{}, Findings: []wire.HygieneFinding{}, Warnings: []string{}, Complete: true,
				FiltersDisabled: repo.FiltersDisabled()}, built: map[string]int{}}
		err := h.look(ctx, repo, in.IncludeTracked)
		h.end()
		return h.out, err
	})
}

// hygieneLook collects findings. Problems come first: each source of them is looked at in turn.
type hygieneLook struct {
	out   wire.HygieneOut
	root  *os.Root
	page  pager
	found []wire.HygieneFinding // warnings, until the problems are told
	built map[string]int        // files of build output by directory
	read  int                   // untracked files read
	bytes int64
}

func (h *hygieneLook) look(ctx context.Context, repo *git.Repo, tracked bool) error {
	if op := repo.Operation(); op != "" {
		h.add(foundOperation, "", wire.HygieneFinding{Detail: op})
	}
	var untracked, added []string
	_, err := repo.Status(ctx, func(e git.StatusEntry) error {
		switch {
		case e.Conflicted:
			h.add(foundUnmerged, e.Path, wire.HygieneFinding{})
		case e.Untracked:
			untracked = append(untracked, e.Path)
		case e.Staged == git.Added || e.Staged == git.Renamed:
			added = append(added, e.Path)
		}
		return nil
	})
	if err == nil {
		err = h.changed(ctx, repo)
	}
	if err != nil {
		return err
	}
	for _, p := range added {
		if !tracked { // else its name is looked at with the others
			h.name(p)
		}
	}
	for _, p := range untracked {
		if err := ctx.Err(); err != nil {
			return err
		}
		h.untracked(p)
	}
	if tracked {
		return h.tracked(ctx, repo)
	}
	return nil
}

// add notes a finding of a raw path.
func (h *hygieneLook) add(kind, p string, f wire.HygieneFinding) {
	h.out.Counts[kind]++
	f.Kind, f.Severity = kind, "warning"
	f.Path, f.Lossy = git.Show(p)
	if slices.Contains(problems, kind) {
		f.Severity = "problem"
		h.out.Problems++
		h.tell(f)
		return
	}
	h.out.Warned++
	if len(h.found) < maxFindings {
		h.found = append(h.found, f)
	}
}

func (h *hygieneLook) tell(f wire.HygieneFinding) {
	if h.page.take(chars(f.Path) + 2*entryFrame) {
		h.out.Findings = append(h.out.Findings, f)
	}
}

// end puts the warnings behind the problems and judges.
func (h *hygieneLook) end() {
	dirs := make([]string, 0, len(h.built))
	for dir := range h.built {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		h.add(foundBuild, dir, wire.HygieneFinding{Files: h.built[dir]})
	}
	for _, f := range h.found {
		h.tell(f)
	}
	h.out.Truncated = len(h.out.Findings) < h.out.Problems+h.out.Warned
	switch {
	case h.out.Problems > 0:
		h.out.Verdict = wire.HygieneProblems
	case h.out.Warned > 0:
		h.out.Verdict = wire.HygieneAttention
	default:
		h.out.Verdict = wire.HygieneClean
	}
	h.out.Clean = h.out.Verdict == wire.HygieneClean
	h.out.Complete = len(h.out.Warnings) == 0
}

// incomplete says once what was not looked at.
func (h *hygieneLook) incomplete(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(h.out.Warnings, w) {
		h.out.Warnings = append(h.out.Warnings, w)
	}
}

// changed looks at the lines that were added to tracked files since HEAD.
func (h *hygieneLook) changed(ctx context.Context, repo *git.Repo) error {
	return repo.Patch(ctx, git.Scope{AgainstHead: true}, func(in io.Reader) error {
		counted := &countingReader{in: io.LimitReader(in, maxHygieneDiff)}
		pr := git.NewPatchReader(counted)
		file, line := "", 0
		for {
			piece, err := pr.Next()
			switch {
			case errors.Is(err, io.EOF):
				if counted.n == maxHygieneDiff {
					h.incomplete("only the first %d bytes of the diff were looked at", maxHygieneDiff)
					return git.Enough
				}
				return nil
			case err != nil:
				return err
			case piece.File != nil:
				file = piece.File.Path
			case piece.Hunk != nil:
				line = piece.Hunk.NewStart
			case len(piece.Line) > 0 && piece.Line[0] == '+':
				h.line(file, line, piece.Line[1:])
				line++
			case len(piece.Line) == 0 || piece.Line[0] == ' ':
				line++
			}
		}
	})
}

// leftover is what is put into code for a moment: a debugger's call, or a note to take it out.
var leftover = regexp.MustCompile(`\bdebugger;|\bbinding\.pry\b|\bpdb\.set_trace\(|\bbreakpoint\(\)|\bdbg!\(|(?i:\bdo[ _-]?not[ _-]?commit\b|\bnocommit\b)`)

// line judges one line that is new.
func (h *hygieneLook) line(p string, n int, text []byte) {
	text = bytes.TrimRight(text, "\r")
	switch {
	case bytes.HasPrefix(text, []byte("<<<<<<< ")), bytes.HasPrefix(text, []byte(">>>>>>> ")), bytes.HasPrefix(text, []byte("||||||| ")):
		h.add(foundMarker, p, wire.HygieneFinding{Line: n})
	case leftover.Match(text):
		h.add(foundLeftover, p, wire.HygieneFinding{Line: n})
	}
	if ext := strings.ToLower(path.Ext(p)); ext == ".md" || ext == ".patch" || ext == ".diff" {
		return // blanks at an end mean something there
	}
	if len(text) > 0 && (text[len(text)-1] == ' ' || text[len(text)-1] == '\t') || bytes.HasPrefix(bytes.TrimLeft(text, "\t"), []byte(" \t")) {
		h.add(foundWhitespace, p, wire.HygieneFinding{Line: n})
	}
}

var (
	temporary   = regexp.MustCompile(`(?i)(?:\.orig|\.rej|\.bak|\.tmp|\.temp|\.swp|\.swo|~)$|^(?:\.ds_store|thumbs\.db|desktop\.ini|nohup\.out|npm-debug\.log.*|yarn-error\.log|hs_err_pid\d+\.log|core\.\d+)$|^\.#|^#.*#$`)
	buildOutput = []string{"node_modules", "__pycache__", ".venv", "venv", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".next", ".gradle", ".terraform"}
)

// name judges a file by its name, once.
func (h *hygieneLook) name(p string) {
	if temporary.MatchString(path.Base(p)) {
		h.add(foundTemporary, p, wire.HygieneFinding{})
	}
	if relpath.Sensitive(p) {
		h.add(foundSensitive, p, wire.HygieneFinding{})
	}
}

// output is the directory of build output that a file lies in, or empty.
func output(p string) string {
	parts := strings.Split(p, "/")
	for i, part := range parts[:len(parts)-1] {
		if slices.Contains(buildOutput, part) {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return ""
}

// untracked looks at a file that is neither tracked nor ignored.
func (h *hygieneLook) untracked(p string) {
	if strings.HasSuffix(p, "/") {
		h.add(foundNested, strings.TrimSuffix(p, "/"), wire.HygieneFinding{})
		return
	}
	if dir := output(p); dir != "" {
		h.built[dir]++
		return
	}
	h.name(p)
	info, err := h.root.Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if info.Size() >= hygieneLarge {
		h.add(foundLarge, p, wire.HygieneFinding{Bytes: info.Size()})
	}
	if h.read == maxHygieneFiles || h.bytes >= maxHygieneBytes {
		h.incomplete("only the first %d untracked files, %d bytes of them, were read", maxHygieneFiles, maxHygieneBytes)
		return
	}
	h.content(p)
}

func (h *hygieneLook) content(p string) {
	f, err := h.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			h.incomplete("an untracked file could not be read")
		}
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, maxHygieneFile+1))
	if err != nil {
		h.incomplete("an untracked file could not be read")
		return
	}
	h.read++
	h.bytes += int64(len(data))
	if bytes.IndexByte(data, 0) >= 0 {
		h.add(foundBinary, p, wire.HygieneFinding{Bytes: info.Size()})
		return
	}
	if len(data) > maxHygieneFile {
		data = data[:maxHygieneFile]
		h.incomplete("of untracked files only the first %d bytes were looked at", maxHygieneFile)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		h.line(p, n, bytes.TrimSuffix(line, []byte("\n")))
	}
}

// tracked judges the names of all tracked files.
func (h *hygieneLook) tracked(ctx context.Context, repo *git.Repo) error {
	seen := 0
	return repo.Tracked(ctx, nil, func(t git.Tracked) error {
		if seen++; seen > maxHygieneTracked {
			h.incomplete("only the first %d tracked files were looked at", maxHygieneTracked)
			return nil
		}
		if dir := output(t.Path); dir != "" {
			h.built[dir]++
			return nil
		}
		if t.Stage == 0 {
			h.name(t.Path)
		}
		return nil
	})
}
