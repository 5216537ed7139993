package gitops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"webcodex/eventlog/event"
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
	if in.Only {
		found := findInstructions(p.Root, in.Text)
		return wire.ObserveWorkspaceOut{Status: wire.WorkspaceUnavailable, Reason: "not_requested", Conflicts: []string{}, Instructions: &found}, nil
	}
	out, err := with(ctx, p, func(repo *git.Repo) (wire.ObserveWorkspaceOut, error) { return lookAt(ctx, repo, in.Tree) })
	if err != nil {
		if ctx.Err() != nil {
			return out, err
		}
		out = wire.ObserveWorkspaceOut{Status: wire.WorkspaceUnavailable, Reason: reasonOf(err), Conflicts: []string{}}
	}
	if in.Instructions {
		found := findInstructions(p.Root, in.Text)
		out.Instructions = &found
	}
	return out, nil
}

func lookAt(ctx context.Context, repo *git.Repo, tree bool) (wire.ObserveWorkspaceOut, error) {
	out := wire.ObserveWorkspaceOut{Status: wire.WorkspaceClean, Conflicts: []string{}, FiltersDisabled: repo.FiltersDisabled()}
	files := repo.NewTree()
	head, err := repo.Status(ctx, func(e git.StatusEntry) error {
		files.Add(e)
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
	if tree {
		out.Tree, out.TreeReason = identity(ctx, files)
	}
	return out, nil
}

// identity never fails the request that asks for it: a tree without one says why.
func identity(ctx context.Context, files *git.Tree) (id, reason string) {
	id, reason, err := files.Hash(ctx)
	if err != nil {
		return "", reasonOf(err)
	}
	return id, reason
}

// reasonOf is a fixed word for why git could not tell.
func reasonOf(err error) string {
	f := fault.As(err)
	if f.Reason != "" {
		return f.Reason
	}
	return string(f.Kind)
}

// Bind gives the commit and the identity of the files of a root, for runner.Options.Tree: what
// a run proves is bound to them. It takes at most bindTime, and says why where it cannot tell.
func Bind(ctx context.Context, root *os.Root) event.Binding {
	ctx, cancel := context.WithTimeout(ctx, bindTime)
	defer cancel()
	repo, err := git.Open(ctx, root)
	if err != nil {
		return event.Binding{Reason: reasonOf(err)}
	}
	defer repo.Close()
	files := repo.NewTree()
	head, err := repo.Status(ctx, func(e git.StatusEntry) error {
		files.Add(e)
		return nil
	})
	if err != nil {
		return event.Binding{Reason: reasonOf(err)}
	}
	b := event.Binding{Commit: head.Commit}
	b.Tree, b.Reason = identity(ctx, files)
	return b
}

// findInstructions fingerprints the instruction files; their text goes into an answer only
// where it was asked for (STA-14).
func findInstructions(root *os.Root, text bool) wire.InstructionSources {
	out := wire.InstructionSources{Sources: make([]wire.InstructionSource, len(instructionFiles))}
	for i, name := range instructionFiles {
		out.Sources[i] = instructionSource(root, name, text)
	}
	return out
}

func instructionSource(root *os.Root, name string, text bool) wire.InstructionSource {
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
	var kept bytes.Buffer
	n, err := io.Copy(h, io.TeeReader(io.LimitReader(f, maxInstructBytes+1), &kept))
	switch s.Bytes = n; {
	case err != nil:
		s.Status = wire.SourceUnreadable
	case n > maxInstructBytes: // it grew
		s.Status = wire.SourceTooLarge
	default:
		s.Status, s.SHA256 = wire.SourceLoaded, hex.EncodeToString(h.Sum(nil))
		if text {
			s.Text, s.Cut = beginning(kept.Bytes())
		}
	}
	return s
}

// beginning is as much of a text as an observation carries, cut at a character's border.
func beginning(b []byte) (string, bool) {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if len(s) <= wire.MaxInstructionText {
		return s, false
	}
	n := wire.MaxInstructionText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], true
}
