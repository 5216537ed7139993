package gitops

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"syscall"

	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// Defaults of the hunks in read_workspace_changes.
const (
	defaultChangeHunks     = 20
	defaultChangeHunkLines = 80
)

func workspaceChanges(ctx context.Context, p *runner.Project, in wire.WorkspaceChangesIn) (wire.WorkspaceChangesOut, error) {
	return with(ctx, p, func(repo *git.Repo) (wire.WorkspaceChangesOut, error) {
		out := wire.WorkspaceChangesOut{Files: []wire.GitStatusEntry{}, FiltersDisabled: repo.FiltersDisabled()}
		stats, err := statistics(ctx, repo, &out.DiffStat)
		if err != nil {
			return out, err
		}
		page := pager{limit: maxChangedFiles, room: changeFilesChars}
		var untracked []string
		at, err := repo.Status(ctx, func(e git.StatusEntry) error {
			count(&out.Counts, e)
			if e.Untracked && len(untracked) < maxPreviews {
				untracked = append(untracked, e.Path)
			}
			w := statusEntry(e)
			if f, ok := stats[e.Path]; ok && !f.Binary {
				w.Additions, w.Deletions = &f.Additions, &f.Deletions
			}
			if page.take(chars(w.Path) + chars(w.OrigPath) + entryFrame) {
				out.Files = append(out.Files, w)
			}
			return nil
		})
		if err != nil {
			return out, err
		}
		out.GitHead = headOf(at, repo)
		out.Clean, out.Total, out.Returned = out.Counts.Total == 0, out.Counts.Total, len(out.Files)
		out.Truncated = out.Returned < out.Total
		if !in.IncludeDiff {
			return out, nil
		}
		h := newHunkPage(clamp(in.MaxHunks, defaultChangeHunks, maxHunks), clamp(in.MaxHunkLines, defaultChangeHunkLines, maxHunkLines), changeHunksChars)
		h.out.Scope, h.out.FiltersDisabled = "head", repo.FiltersDisabled()
		diff, err := h.read(ctx, repo, git.Scope{AgainstHead: true})
		if err != nil {
			return out, err
		}
		// The rest is read with read_git_diff_hunks, which compares other states.
		diff.NextContinuation = ""
		out.Diff = &diff
		out.Previews = previews(p.Root, untracked)
		return out, nil
	})
}

// statistics counts lines of tracked files against HEAD, by path.
func statistics(ctx context.Context, repo *git.Repo, total *wire.DiffStat) (map[string]git.FileStat, error) {
	stats := map[string]git.FileStat{}
	err := repo.Stat(ctx, git.Scope{AgainstHead: true}, func(f git.FileStat) error {
		if have, twice := stats[f.Path]; twice {
			f.Additions, f.Deletions = max(f.Additions, have.Additions), max(f.Deletions, have.Deletions)
		}
		stats[f.Path] = f
		return nil
	})
	for _, f := range stats {
		total.Additions += f.Additions
		total.Deletions += f.Deletions
	}
	total.Files = len(stats)
	return stats, err
}

// previews shows the beginning of untracked text files.
func previews(root *os.Root, paths []string) []wire.UntrackedPreview {
	out := []wire.UntrackedPreview{}
	room := previewChars
	for _, path := range paths {
		shown, lossy := git.Show(path)
		if lossy || room <= 0 {
			continue
		}
		v, ok := preview(root, path, room)
		if !ok {
			continue
		}
		v.Path = shown
		room -= chars(v.Text) + chars(shown) + entryFrame
		out = append(out, v)
	}
	return out
}

func preview(root *os.Root, path string, room int) (v wire.UntrackedPreview, ok bool) {
	if info, err := root.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return v, false
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return v, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return v, false
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxPreviewBytes))
	if err != nil {
		return v, false
	}
	v.Bytes = info.Size()
	if bytes.IndexByte(raw, 0) >= 0 {
		v.Binary = true
		return v, true
	}
	whole := int64(len(raw)) >= v.Bytes
	lines := raw
	for i, n := 0, 0; i < len(raw); i++ {
		if raw[i] == '\n' {
			if n++; n == maxPreviewLines && i+1 < len(raw) {
				lines, whole = raw[:i+1], false
				break
			}
		}
	}
	kept, text := cutPage(lines, room, whole)
	v.Text, v.Truncated = strings.TrimRight(text, "\uFFFD"), !whole || kept < len(lines)
	return v, true
}
