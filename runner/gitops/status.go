package gitops

import (
	"context"

	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// defaultStatusLimit is a page where none was asked for.
const defaultStatusLimit = 200

func gitStatus(ctx context.Context, p *runner.Project, in wire.GitStatusIn) (wire.GitStatusOut, error) {
	return with(ctx, p, func(repo *git.Repo) (wire.GitStatusOut, error) {
		out := wire.GitStatusOut{Files: []wire.GitStatusEntry{}, FiltersDisabled: repo.FiltersDisabled()}
		page := pager{offset: max(0, in.Offset), limit: clamp(in.Limit, defaultStatusLimit, maxStatusLimit), room: statusChars}
		head, err := repo.Status(ctx, func(e git.StatusEntry) error {
			count(&out.Counts, e)
			w := statusEntry(e)
			if page.take(chars(w.Path) + chars(w.OrigPath) + entryFrame) {
				out.Files = append(out.Files, w)
			}
			return nil
		})
		if err != nil {
			return out, err
		}
		out.GitHead = headOf(head, repo)
		out.Clean, out.Returned = out.Counts.Total == 0, len(out.Files)
		out.NextOffset = page.next()
		out.Truncated = out.NextOffset != nil
		return out, nil
	})
}

// entryFrame is what a list entry takes in JSON besides its names.
const entryFrame = 60

// pager picks a page of entries as they come by: from offset, at most limit, within room. The
// first entry of a page is taken whatever its size, so that paging always gets on.
type pager struct {
	offset, limit, room int
	seen, taken         int
	full                bool
}

func (p *pager) take(size int) bool {
	at := p.seen
	p.seen++
	if at < p.offset || p.full {
		return false
	}
	if p.taken == p.limit || p.taken > 0 && p.room < size {
		p.full = true
		return false
	}
	p.room -= size
	p.taken++
	return true
}

// next is the offset of the next page, nil where this was the last.
func (p *pager) next() *int {
	if at := p.offset + p.taken; at < p.seen {
		return &at
	}
	return nil
}

func count(c *wire.GitCounts, e git.StatusEntry) {
	c.Total++
	switch {
	case e.Untracked:
		c.Untracked++
	case e.Conflicted:
		c.Conflicted++
	}
	if e.Staged != "" {
		c.Staged++
	}
	if e.Unstaged != "" {
		c.Unstaged++
	}
}

func statusEntry(e git.StatusEntry) wire.GitStatusEntry {
	w := wire.GitStatusEntry{Staged: e.Staged, Unstaged: e.Unstaged, Untracked: e.Untracked, Conflicted: e.Conflicted}
	w.Path, w.OrigPath, w.Lossy = names(e.Path, e.Orig)
	return w
}

// names shows a path and, where there is one, the path it had before.
func names(path, orig string) (shown, shownOrig string, lossy bool) {
	shown, lossy = git.Show(path)
	shownOrig, lossyOrig := git.Show(orig)
	return shown, shownOrig, lossy || lossyOrig
}

func headOf(h git.Head, repo *git.Repo) wire.GitHead {
	return wire.GitHead{Branch: clip(h.Branch, maxSubjectChars), Head: h.Commit, Detached: h.Detached, Unborn: h.Unborn,
		Upstream: clip(h.Upstream, maxSubjectChars), Ahead: h.Ahead, Behind: h.Behind, Operation: repo.Operation()}
}
