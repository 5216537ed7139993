package gitops

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// Defaults of a page of hunks.
const (
	defaultHunks     = 30
	defaultHunkLines = 160
)

func gitDiffHunks(ctx context.Context, p *runner.Project, in wire.DiffHunksIn) (wire.DiffHunksOut, error) {
	scope, word, err := scopeOf(in.DiffScope)
	if err != nil {
		return wire.DiffHunksOut{}, err
	}
	at, err := readCursor(in.Continuation, cursorHunks, in.DiffScope)
	if err != nil {
		return wire.DiffHunksOut{}, err
	}
	return with(ctx, p, func(repo *git.Repo) (wire.DiffHunksOut, error) {
		h := newHunkPage(clamp(in.MaxHunks, defaultHunks, maxHunks), clamp(in.MaxHunkLines, defaultHunkLines, maxHunkLines), hunksChars)
		h.at, h.out.Scope, h.out.FiltersDisabled = at, word, repo.FiltersDisabled()
		return h.read(ctx, repo, scope)
	})
}

// hunkPage collects one page of hunks from a patch. An item is a hunk, or a file without any.
type hunkPage struct {
	out          wire.DiffHunksOut
	at           cursor
	hunks, lines int // bounds
	room         int // characters left
	items        int64
	taken        int
	file         *git.PatchFile // of the hunks that follow
	shown        bool           // it is in out already
	hunk         *wire.Hunk     // being filled; nil: its lines are passed over
	hunkLines    int
	hunkSum      string // of the reader when the hunk began
	text         strings.Builder
	textChars    int
}

func newHunkPage(hunks, lines, room int) *hunkPage {
	return &hunkPage{out: wire.DiffHunksOut{Files: []wire.HunksFile{}, Reasons: []string{}}, hunks: hunks, lines: lines, room: room}
}

func (h *hunkPage) read(ctx context.Context, repo *git.Repo, scope git.Scope) (wire.DiffHunksOut, error) {
	err := repo.Patch(ctx, scope, func(in io.Reader) error {
		err := h.collect(git.NewPatchReader(in))
		if errors.Is(err, io.EOF) {
			h.flush()
			if h.items < h.at.At {
				return stale()
			}
			return nil
		}
		return err
	})
	if fault.KindOf(err) == fault.OutputBudgetExceeded && h.taken > 0 {
		h.flush()
		h.because("diff_too_large")
		err = nil
	}
	return h.out, err
}

func (h *hunkPage) because(reason string) {
	h.out.Truncated = true
	if !slices.Contains(h.out.Reasons, reason) {
		h.out.Reasons = append(h.out.Reasons, reason)
	}
}

// collect ends with io.EOF at the patch's end and git.Enough when the page is full.
func (h *hunkPage) collect(p *git.PatchReader) error {
	for {
		piece, err := p.Next()
		if err != nil {
			return err
		}
		switch {
		case piece.File != nil:
			h.flush()
			h.file, h.shown = piece.File, false
			if piece.File.Bare {
				err = h.bare(p)
			}
		case piece.Hunk != nil:
			h.flush()
			err = h.begin(piece.Hunk, p)
		case h.hunk != nil:
			err = h.line(piece)
		}
		if err != nil {
			return err
		}
	}
}

// item counts the next item; pass says that an earlier page showed it.
func (h *hunkPage) item(p *git.PatchReader) (pass bool, err error) {
	h.items++
	if h.items <= h.at.At {
		return true, nil
	}
	if h.items == h.at.At+1 && h.at.At > 0 && p.Sum() != h.at.Before {
		return false, stale()
	}
	return false, nil
}

// full ends the page before the item that was just counted.
func (h *hunkPage) full(reason, sum string) error {
	h.because(reason)
	h.at.At, h.at.Before = h.items-1, sum
	h.out.HasMore, h.out.NextContinuation = true, h.at.String()
	return git.Enough
}

func (h *hunkPage) bare(p *git.PatchReader) error {
	pass, err := h.item(p)
	if pass || err != nil {
		return err
	}
	size := len(h.file.Path) + len(h.file.Orig) + entryFrame
	if h.taken > 0 && size > h.room {
		return h.full("output_budget", p.Sum())
	}
	h.show()
	h.taken++
	return nil
}

// show adds the current file to the page.
func (h *hunkPage) show() {
	if h.shown {
		return
	}
	h.shown = true
	f := wire.HunksFile{Change: h.file.Change, Binary: h.file.Binary, Hunks: []wire.Hunk{}}
	f.Path, f.OrigPath, f.Lossy = names(h.file.Path, h.file.Orig)
	h.room -= chars(f.Path) + chars(f.OrigPath) + entryFrame
	h.out.Files = append(h.out.Files, f)
}

func (h *hunkPage) begin(head *git.PatchHunk, p *git.PatchReader) error {
	pass, err := h.item(p)
	if pass || err != nil || h.file == nil {
		return err
	}
	if h.out.HunkCount == h.hunks {
		return h.full("max_hunks", p.Sum())
	}
	if h.taken > 0 && h.room < entryFrame+len(h.file.Path) {
		return h.full("output_budget", p.Sum())
	}
	h.hunk = &wire.Hunk{OldStart: head.OldStart, OldLines: head.OldLines, NewStart: head.NewStart, NewLines: head.NewLines,
		Section: clip(head.Section, maxSectionChars)}
	h.hunkLines, h.hunkSum, h.textChars = 0, p.Sum(), 0
	h.text.Reset()
	return nil
}

// line adds one line to the open hunk. A hunk that does not fit beside others begins the next
// page; one that fits no page is cut.
func (h *hunkPage) line(piece git.Piece) error {
	if h.hunk.Truncated {
		return nil
	}
	if h.hunkLines == h.lines {
		h.hunk.Truncated = true
		h.because("max_hunk_lines")
		return nil
	}
	text := strings.ToValidUTF8(string(piece.Line), "\uFFFD")
	size := chars(text) + 2
	left := h.room - h.textChars
	if size > left {
		if h.taken > 0 {
			h.hunk = nil
			return h.full("output_budget", h.hunkSum)
		}
		text = head(text, max(0, left-2))
		size = chars(text) + 2
		h.hunk.Truncated = true
		h.because("output_budget")
	}
	if piece.Cut {
		h.hunk.Truncated = true
		h.because("output_budget")
	}
	h.hunkLines++
	h.text.WriteString(text)
	h.text.WriteByte('\n')
	h.textChars += size
	return nil
}

// flush puts the open hunk into the page.
func (h *hunkPage) flush() {
	if h.hunk == nil {
		return
	}
	h.show()
	h.hunk.Text = h.text.String()
	h.room -= h.textChars + entryFrame
	f := &h.out.Files[len(h.out.Files)-1]
	f.Hunks = append(f.Hunks, *h.hunk)
	h.out.HunkCount++
	h.taken++
	h.hunk = nil
}

// head is the beginning of s that takes at most room characters in JSON.
func head(s string, room int) string {
	for i, r := range s {
		if room -= charLen(r); room < 0 {
			return s[:i]
		}
	}
	return s
}
