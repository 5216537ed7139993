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
	out := wire.InstructionSources{Sources: make([]wire.InstructionSource, len(instructionFiles))}
	for i, name := range instructionFiles {
		out.Sources[i] = instructionSource(root, name)
	}
	return out
}

func instructionSource(root *os.Root, name string) wire.InstructionSource {
	s := wire.InstructionSource{Path: name}
	if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		s.Status = wire.SourceNotFound
		return s
	}
	// A FIFO must not hold the open, a device must not be read.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		s.Status = wire.SourceUnreadable
		return s
	case err != nil: // os.Root says so of a link that leads out
		s.Status = wire.SourceOutside
		return s
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		s.Status = wire.SourceUnreadable
		return s
	case !info.Mode().IsRegular():
		s.Status = wire.SourceNotRegular
		return s
	case info.Size() > maxInstructBytes:
		s.Status, s.Bytes = wire.SourceTooLarge, info.Size()
		return s
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxInstructBytes+1))
	switch s.Bytes = n; {
	case err != nil:
		s.Status = wire.SourceUnreadable
	case n > maxInstructBytes: // it grew
		s.Status = wire.SourceTooLarge
	default:
		s.Status, s.SHA256 = wire.SourceLoaded, hex.EncodeToString(h.Sum(nil))
	}
	return s
}
