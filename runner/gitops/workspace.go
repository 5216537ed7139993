package gitops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// instructionFiles are looked for in the root, in this order.
var instructionFiles = []string{"AGENTS.md", "CLAUDE.md"}

// observeWorkspace answers whatever the repository is like; only a request that ends early is
// a fault.
func observeWorkspace(ctx context.Context, p *runner.Project, in wire.ObserveWorkspaceIn) (wire.ObserveWorkspaceOut, error) {
	out, err := with(ctx, p, func(repo *git.Repo) (wire.ObserveWorkspaceOut, error) { return lookAt(ctx, repo) })
	if err != nil {
		if ctx.Err() != nil {
			return out, err
		}
		f := fault.As(err)
		out = wire.ObserveWorkspaceOut{Status: wire.WorkspaceUnavailable, Reason: f.Reason, Conflicts: []string{}}
		if out.Reason == "" {
			out.Reason = string(f.Kind)
		}
	}
	if in.Instructions {
		found := findInstructions(p.Root)
		out.Instructions = &found
	}
	return out, nil
}

func lookAt(ctx context.Context, repo *git.Repo) (wire.ObserveWorkspaceOut, error) {
	out := wire.ObserveWorkspaceOut{Status: wire.WorkspaceClean, Conflicts: []string{}, FiltersDisabled: repo.FiltersDisabled()}
	head, err := repo.Status(ctx, func(e git.StatusEntry) error {
		out.ChangedFiles++
		if e.Conflicted {
			if out.ConflictCount++; len(out.Conflicts) < maxConflicts {
				shown, _ := git.Show(e.Path)
				out.Conflicts = append(out.Conflicts, shown)
			}
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	out.Branch, out.Head, out.Detached = clip(head.Branch, maxSubjectChars), head.Commit, head.Detached
	switch {
	case out.ConflictCount > 0:
		out.Status = wire.WorkspaceBlocked
	case out.ChangedFiles > 0:
		out.Status = wire.WorkspaceDirty
	}
	return out, nil
}

// findInstructions fingerprints the instruction files; their text is never read into an
// answer (STA-14).
func findInstructions(root *os.Root) wire.InstructionSources {
	out := wire.InstructionSources{Status: "none", Sources: []wire.InstructionSource{}}
	loaded := 0
	for _, name := range instructionFiles {
		s, found := instructionSource(root, name)
		if !found {
			continue
		}
		out.Sources = append(out.Sources, s)
		if s.Status == "loaded" {
			loaded++
		}
	}
	switch {
	case len(out.Sources) == 0:
	case loaded == len(out.Sources):
		out.Status = "loaded"
	default:
		out.Status = "partial"
	}
	return out
}

func instructionSource(root *os.Root, name string) (s wire.InstructionSource, found bool) {
	s.Path = name
	if _, err := root.Lstat(name); err != nil {
		s.Status = "unreadable"
		return s, !errors.Is(err, fs.ErrNotExist)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		s.Status = "unreadable"
		return s, true
	case err != nil: // os.Root says so of a link that leads out
		s.Status = "outside_project"
		return s, true
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		s.Status = "unreadable"
	case !info.Mode().IsRegular():
		s.Status = "not_regular"
	case info.Size() > maxInstructBytes:
		s.Status, s.Bytes = "too_large", info.Size()
	default:
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(f, maxInstructBytes))
		if s.Bytes = n; err != nil {
			s.Status = "unreadable"
			return s, true
		}
		s.Status, s.SHA256 = "loaded", hex.EncodeToString(h.Sum(nil))
	}
	return s, true
}
