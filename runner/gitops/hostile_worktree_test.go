package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/checkpoint"
	"webcodex/runner/files"
	"webcodex/runner/wire"
	"webcodex/runner/worktree"
)

// plainly are the ways in that plain git takes when it makes a worktree.
var plainly = map[string]bool{"filter clean and smudge": true, "filter process": true, "hooks": true, "hooks in the tree": true}

// ofDiffs are ways in by commands that neither worktrees nor checkpoints need.
var ofDiffs = map[string]bool{"external diff": true, "diff driver": true, "textconv": true, "gpg": true, "pagers and editors": true,
	"merge driver": true, "credential helper and proxy": true}

// Nor does a hostile repository run anything where a worktree is made of it, or in the worktree, or
// where its files are kept and put back.
func TestHostileRepositoryRunsNothingInWorktrees(t *testing.T) {
	for _, h := range hostileMatrix {
		if ofDiffs[h.name] {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			r := newRepo(t)
			r.write("file", "one\n")
			r.write("other", "one\n")
			r.commit("base")
			marker := filepath.Join(t.TempDir(), "marker")
			script := filepath.Join(t.TempDir(), "evil")
			if err := os.WriteFile(script, []byte("#!/bin/sh\necho ran >> "+marker+"\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			h.plant(r, script)
			commitAttributes(r)
			forget(t, marker)
			served, err := runner.New(runner.Options{Dir: filepath.Join(t.TempDir(), "runner"), Client: "c1"})
			if err != nil {
				t.Fatal(err)
			}
			defer served.Close()
			m := worktree.Register(served, worktree.Options{})
			kept := checkpoint.Register(served, files.Register(served), nil)
			source, err := served.AddProject(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Create(t.Context(), source, wire.CreateWorktreeIn{Operation: "0123456789abcdef0123456789abcdef"})
			if ran(marker) {
				t.Fatal("making the worktree ran the repository's program")
			}
			keepAndRestore(t, kept, source, h)
			if ran(marker) {
				t.Error("a checkpoint ran the repository's program")
				forget(t, marker)
			}
			if h.refused {
				if fault.As(err).Reason != "git_dir_outside_project" {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v (%v)", err, fault.As(err).Unwrap())
			}
			for _, p := range served.Projects() {
				if p.ID != out.Project.ID {
					continue
				}
				if text, err := os.ReadFile(filepath.Join(p.Path, "other")); err != nil || string(text) != "one\n" {
					t.Errorf("a file is %q %v", text, err)
				}
				if err := os.WriteFile(filepath.Join(p.Path, "file"), []byte("two\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				_, err := workspaceChanges(t.Context(), p, wire.WorkspaceChangesIn{IncludeDiff: true})
				h.judge(t, "workspace_changes", err)
				_, err = restorePaths(t.Context(), p, wire.RestorePathsIn{Paths: []string{"file"}})
				h.judge(t, "restore_paths", err)
				if ran(marker) {
					t.Error("an op ran the repository's program")
				}
			}
			if seen, err := m.Observe(t.Context(), served.Projects()[0], wire.ObserveWorktreeIn{BaseRef: "main"}); ran(marker) {
				t.Error("looking at it ran the repository's program", seen, err)
			}
			if plainly[h.name] {
				out, _ := r.tryGit("worktree", "add", filepath.Join(t.TempDir(), "plain"))
				if !ran(marker) {
					t.Errorf("plain git left no marker either: the trap is not real\n%s", out)
				}
			}
		})
	}
}

// keepAndRestore makes a checkpoint, changes a file that is as in HEAD, and puts it back.
func keepAndRestore(t *testing.T, s *checkpoint.Service, p *runner.Project, h hostile) {
	t.Helper()
	id, before := "wc_ckpt_"+strings.Repeat("1", 32), "wc_ckpt_"+strings.Repeat("2", 32)
	_, err := s.Create(t.Context(), p, wire.CreateCheckpointIn{ID: id, Untracked: true, CheckpointAbout: wire.CheckpointAbout{Kind: "snapshot"}})
	if h.refused {
		if fault.As(err).Reason != "git_dir_outside_project" {
			t.Errorf("a checkpoint: %v", err)
		}
		return
	}
	if err != nil {
		t.Errorf("a checkpoint: %v (%v)", err, fault.As(err).Unwrap())
		return
	}
	other := filepath.Join(p.Path, "other")
	if err := os.WriteFile(other, []byte("three\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	seen, err := s.Read(t.Context(), p, wire.ReadCheckpointIn{ID: id})
	if err != nil {
		t.Errorf("reading it: %v (%v)", err, fault.As(err).Unwrap())
		return
	}
	out, err := s.Restore(t.Context(), p, wire.RestoreCheckpointIn{ID: id, Expected: seen.Current, Before: before})
	text, rerr := os.ReadFile(other)
	filtered := len(out.Skipped) == 1 && out.Skipped[0].Reason == "content_filter"
	if err != nil || rerr != nil || (string(text) != "one\n") != filtered {
		t.Errorf("putting it back: %+v %q %v", out, text, err)
	}
	if _, err := s.Delete(t.Context(), p, wire.DeleteCheckpointIn{ID: id}); err != nil {
		t.Errorf("deleting it: %v", err)
	}
}

// commitAttributes puts the attributes of the working tree, where there are any, into HEAD, so that
// traps that sit on files lie in wait in a worktree too. Nothing of it looks at a file.
func commitAttributes(r *repo) {
	if _, err := os.Stat(filepath.Join(r.dir, ".gitattributes")); err != nil {
		return
	}
	blob := r.git("hash-object", "-w", "--no-filters", ".gitattributes")
	aside := []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "--work-tree=" + r.t.TempDir()}
	index := filepath.Join(r.dir, ".git", "index")
	kept, err := os.ReadFile(index)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, args := range [][]string{{"read-tree", "HEAD"}, {"update-index", "--add", "--cacheinfo", "100644," + blob + ",.gitattributes"}} {
		r.git(append(aside, args...)...)
	}
	commit := r.git(append(aside, "commit-tree", "-p", "HEAD", "-m", "attributes", r.git(append(aside, "write-tree")...))...)
	r.git(append(aside, "update-ref", "HEAD", commit)...)
	if err := os.WriteFile(index, kept, 0o644); err != nil {
		r.t.Fatal(err)
	}
}
