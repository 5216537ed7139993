package gitops

import (
	"os"
	"path/filepath"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
	"webcodex/runner/worktree"
)

// plainly are the ways in that plain git takes when it makes a worktree.
var plainly = map[string]bool{"filter clean and smudge": true, "filter process": true, "hooks": true, "hooks in the tree": true}

// Nor does a hostile repository run anything where a worktree is made of it, or in the worktree.
func TestHostileRepositoryRunsNothingInWorktrees(t *testing.T) {
	for _, h := range hostileMatrix {
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
			source, err := served.AddProject(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Create(t.Context(), source, wire.CreateWorktreeIn{Operation: "0123456789abcdef0123456789abcdef"})
			if ran(marker) {
				t.Fatal("making the worktree ran the repository's program")
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
