package gitops

import (
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"webcodex/internal/git"
	"webcodex/runner/wire"
)

func (r *repo) tree() string {
	r.t.Helper()
	b := Bind(r.t.Context(), r.p.Root)
	if b.Tree == "" || len(b.Tree) != 64 || b.Reason != "" {
		r.t.Fatalf("%+v", b)
	}
	return b.Tree
}

// What a tree is follows from its files alone: staging, committing, switching back and ignored
// files leave it, every change of a name, a mode or a content moves it, and undoing that
// brings it back.
func TestATreeIsItsFiles(t *testing.T) {
	r := newRepo(t)
	r.write("kept.go", "package a\n")
	r.write("dir/moved.txt", "text\n")
	r.write(".gitignore", "*.log\n")
	r.write("odd \xff name", "bytes\n")
	before := r.tree() // nothing is tracked yet
	same := func(what string) {
		t.Helper()
		if got := r.tree(); got != before {
			t.Errorf("%s: another tree", what)
		}
	}
	other := func(what string) {
		t.Helper()
		if got := r.tree(); got == before {
			t.Errorf("%s: the same tree", what)
		}
	}
	commit := r.commit("all of it")
	same("committed")
	if b := Bind(t.Context(), r.p.Root); b.Commit != commit {
		t.Errorf("%+v", b)
	}
	r.write("debug.log", "ignored")
	same("an ignored file")
	r.write("kept.go", "package b\n")
	other("an edit")
	r.git("add", "kept.go")
	other("a staged edit")
	r.write("kept.go", "package a\n") // staged is b, on the disk is a
	same("undone on the disk")
	r.git("reset", "-q", "--hard")
	same("reset")
	r.write("new.txt", "x")
	other("an untracked file")
	r.git("add", "-N", "new.txt")
	other("one that is meant to be added")
	r.git("rm", "-q", "-f", "--cached", "new.txt")
	must0(t, os.Remove(filepath.Join(r.dir, "new.txt")))
	same("which is gone")
	must0(t, os.Chmod(filepath.Join(r.dir, "kept.go"), 0o755))
	other("a mode")
	must0(t, os.Chmod(filepath.Join(r.dir, "kept.go"), 0o644))
	must0(t, os.Rename(filepath.Join(r.dir, "dir/moved.txt"), filepath.Join(r.dir, "dir/name.txt")))
	other("a rename")
	r.git("add", "-A")
	other("a staged rename")
	r.git("reset", "-q", "--hard")
	must0(t, os.Remove(filepath.Join(r.dir, "kept.go")))
	other("a deletion")
	must0(t, os.Symlink("dir/moved.txt", filepath.Join(r.dir, "kept.go")))
	other("a symlink")
	r.git("reset", "-q", "--hard")
	r.git("switch", "-q", "-c", "side")
	r.write("kept.go", "package side\n")
	r.commit("side")
	other("another branch")
	r.git("switch", "-q", "main")
	same("and back")
}

func must0(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The observation of a workspace and the binding of a run tell the same identity, and where
// there is none, why.
func TestWhereATreeHasNoIdentity(t *testing.T) {
	r := newRepo(t)
	r.write("a", "x")
	seen := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{Tree: true})
	if seen.Tree != r.tree() || seen.TreeReason != "" {
		t.Errorf("%+v", seen)
	}
	if seen := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{}); seen.Tree != "" {
		t.Errorf("%+v", seen)
	}
	inner := newRepoIn(t, filepath.Join(r.dir, "inner"))
	inner.write("b", "y")
	inner.commit("inner")
	if b := Bind(t.Context(), r.p.Root); b.Tree != "" || b.Reason != git.TreeNested {
		t.Errorf("%+v", b)
	}
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.dir, "sub")
	must0(t, os.RemoveAll(inner.dir))
	if b := Bind(t.Context(), r.p.Root); b.Tree != "" || b.Reason != git.TreeSubmodules {
		t.Errorf("%+v", b)
	}
	plain := projectAt(t, t.TempDir())
	if b := Bind(t.Context(), plain.Root); b.Tree != "" || b.Commit != "" || b.Reason != "not_a_repository" {
		t.Errorf("%+v", b)
	}
	big := newRepo(t)
	must0(t, os.WriteFile(filepath.Join(big.dir, "huge"), nil, 0o644))
	must0(t, os.Truncate(filepath.Join(big.dir, "huge"), 65<<20))
	if b := Bind(t.Context(), big.p.Root); b.Tree != "" || b.Reason != git.TreeTooLarge {
		t.Errorf("%+v", b)
	}
}

// Two states have one identity exactly when they hold the same files, however they came to be
// and whatever is staged.
func TestEqualFilesEqualTrees(t *testing.T) {
	base := newRepo(t)
	base.write("seed", "0")
	base.commit("seed")
	rapid.Check(t, func(t *rapid.T) {
		known := map[string]string{} // identity → files
		files := map[string]string{"seed": base.read("seed")}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"seed", "a", "b", "d/c"}).Draw(t, "name")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				_ = os.Remove(filepath.Join(base.dir, name))
				delete(files, name)
			case 1:
				_, _ = base.tryGit("add", "-A")
			default:
				files[name] = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "text")
				base.write(name, files[name])
			}
			is := ""
			for _, n := range []string{"a", "b", "d/c", "seed"} {
				if text, there := files[n]; there {
					is += n + "=" + text + ";"
				}
			}
			id := Bind(base.t.Context(), base.p.Root).Tree
			if was, seen := known[id]; id == "" || seen && was != is {
				t.Fatalf("%q and %q share %q", was, is, id)
			}
			for other, was := range known {
				if was == is && other != id {
					t.Fatalf("%q has two identities", is)
				}
			}
			known[id] = is
		}
		base.git("reset", "-q", "--hard")
		base.git("clean", "-q", "-fdx")
	})
}
