package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func discardGround(t *testing.T) *ground {
	g := newGround(t)
	g.git("init", "-q")
	g.file(".gitignore", "*.log\n")
	g.file("kept.txt", "kept\n")
	g.file("d/kept.txt", "kept\n")
	g.git("add", "-A")
	g.git("commit", "-qm", "base")
	g.file("a.txt", "a\n")
	g.file("a.log", "log\n")
	g.file("d/b.txt", "b\n")
	g.file("d/e/f/c.txt", "c\n")
	g.file("d/e/c.log", "log\n")
	g.file("staged.txt", "s\n")
	g.git("add", "staged.txt")
	g.link("link", "../outside/secret")
	return g
}

func (g *ground) discard(in wire.DiscardIn) (wire.DiscardOut, *fault.Error) {
	g.t.Helper()
	return ask(g, g.s.discardUntracked, in)
}

// A file that is named goes; a directory, or all, only as it was previewed. Tracked, staged and
// ignored files stay.
func TestDiscardUntracked(t *testing.T) {
	g := discardGround(t)
	before := g.snapshot()
	preview, f := ask(g, g.s.previewDiscard, wire.DiscardIn{})
	if f != nil || preview.Count != 4 || preview.Bytes != 6+int64(len("../outside/secret")) || len(preview.Discarded) != 0 {
		t.Fatalf("%s %+v", told(f), preview)
	}
	_, f = g.discard(wire.DiscardIn{})
	wants(g, f, fault.InvalidArguments, "preview_needed")
	_, f = g.discard(wire.DiscardIn{Paths: []string{"d"}})
	wants(g, f, fault.InvalidArguments, "preview_needed")
	_, f = g.discard(wire.DiscardIn{Digest: strings.Repeat("0", 64)})
	wants(g, f, fault.EditConflict, "digest_mismatch")
	g.same(before)

	out, f := g.discard(wire.DiscardIn{Paths: []string{"./a.txt", "link"}})
	if f != nil || !slices.Equal(out.Discarded, []string{"a.txt", "link"}) || g.exists("a.txt") || g.exists("link") {
		t.Fatalf("%s %+v", told(f), out)
	}
	if _, f = g.discard(wire.DiscardIn{Digest: preview.Digest}); f == nil || f.Kind != fault.EditConflict {
		t.Errorf("a preview of before: %s", told(f))
	}
	preview, _ = ask(g, g.s.previewDiscard, wire.DiscardIn{Paths: []string{"d/"}})
	out, f = g.discard(wire.DiscardIn{Paths: []string{"d/"}, Digest: strings.ToUpper(preview.Digest)})
	if f != nil || !slices.Equal(out.Discarded, []string{"d/b.txt", "d/e/f/c.txt"}) || !slices.Equal(out.Directories, []string{"d/e/f"}) {
		t.Fatalf("%s %+v", told(f), out)
	}
	for _, name := range []string{"kept.txt", "d/kept.txt", "a.log", "d/e/c.log", "staged.txt"} {
		if !g.exists(name) {
			t.Errorf("%s is gone", name)
		}
	}
	preview, _ = ask(g, g.s.previewDiscard, wire.DiscardIn{IncludeIgnored: true})
	out, f = g.discard(wire.DiscardIn{IncludeIgnored: true, Digest: preview.Digest})
	if f != nil || !slices.Equal(out.Discarded, []string{"a.log", "d/e/c.log"}) || g.exists("d/e") || !g.exists("d/kept.txt") {
		t.Errorf("%s %+v", told(f), out)
	}
	if g.exists("../outside/secret") == false {
		t.Error("what a link leads to is gone")
	}
	noLeftovers(g)
}

// A preview is of the files as they were: another one, or other content, and nothing goes.
func TestDiscardFence(t *testing.T) {
	for name, change := range map[string]func(g *ground){
		"another file":  func(g *ground) { g.file("new.txt", "n\n") },
		"other content": func(g *ground) { g.file("d/b.txt", "changed\n") },
		"one less":      func(g *ground) { g.must(os.Remove(filepath.Join(g.dir, "a.txt"))) },
		"tracked now":   func(g *ground) { g.git("add", "a.txt") },
	} {
		g := discardGround(t)
		preview, _ := ask(g, g.s.previewDiscard, wire.DiscardIn{})
		change(g)
		before := g.snapshot()
		_, f := g.discard(wire.DiscardIn{Digest: preview.Digest})
		if f == nil || f.Reason != "digest_mismatch" || f.StateChanged {
			t.Errorf("%s: %s", name, told(f))
		}
		for file, was := range g.snapshot() {
			if before[file] != was && !strings.Contains(file, ".git/") {
				t.Errorf("%s: %s changed", name, file)
			}
		}
	}
}

// What is no untracked file is refused with the reason, and one such path refuses all.
func TestDiscardRefuses(t *testing.T) {
	g := discardGround(t)
	g.git("init", "-q", "inner")
	g.file("inner/x", "x\n")
	g.must(os.MkdirAll(filepath.Join(g.dir, "empty"), 0o755))
	g.link("dirlink", "d")
	g.must(os.WriteFile(filepath.Join(g.dir, "bad\xff"), []byte("x"), 0o644))
	many := make([]string, wire.MaxDiscardPaths+1)
	for i := range many {
		many[i] = fmt.Sprintf("n%d", i)
	}
	before := g.snapshot()
	for path, reason := range map[string]string{"kept.txt": "tracked", "staged.txt": "tracked", "a.log": "ignored", "nothing": reasonNotFound,
		"empty": "ignored", "inner": "nested_repository", "inner/x": reasonSymlink, "dirlink/b.txt": reasonSymlink, "../outside/secret": reasonOutside,
		"/etc/passwd": reasonAbsolute, ".git/config": reasonGitInternal, ".git": reasonGitInternal, "a.txt/x": reasonNotDirectory, "": "empty"} {
		_, f := g.discard(wire.DiscardIn{Paths: []string{"d/b.txt", path}})
		if f == nil || f.Kind != fault.InvalidPath || f.Field != "paths[1]" || f.Reason != reason && path != "inner/x" {
			t.Errorf("%q: %s, want %s", path, told(f), reason)
		}
	}
	for name, in := range map[string]wire.DiscardIn{"too many": {Paths: many}, "digest": {Digest: "abc"}, "twice": {Paths: []string{"a.txt", "./a.txt"}},
		"below": {Paths: []string{"d", "d/b.txt"}}} {
		if _, f := g.discard(in); f == nil || f.Kind != fault.InvalidArguments {
			t.Errorf("%s: %s", name, told(f))
		}
	}
	_, f := ask(g, g.s.previewDiscard, wire.DiscardIn{})
	if f == nil || f.Reason != "not_utf8" || !strings.Contains(f.Message, "bad%FF") || f.Next == "" { // nobody named it: it is told which
		t.Errorf("%s", told(f))
	}
	if _, f = g.discard(wire.DiscardIn{Paths: []string{"inner"}}); f == nil || !strings.Contains(f.Message, `"inner"`) {
		t.Errorf("%s", told(f))
	}
	g.same(before)
}

func TestDiscardBounds(t *testing.T) {
	g := newGround(t)
	g.git("init", "-q")
	for i := range wire.MaxDiscardFiles {
		g.file(fmt.Sprintf("d/f%d", i), "x")
	}
	preview, f := ask(g, g.s.previewDiscard, wire.DiscardIn{})
	if f != nil || preview.Count != wire.MaxDiscardFiles {
		t.Fatal(told(f))
	}
	g.file("more", "x")
	_, f = ask(g, g.s.previewDiscard, wire.DiscardIn{})
	wants(g, f, fault.InvalidArguments, "too_many")
	if _, f = g.discard(wire.DiscardIn{Paths: []string{"d"}, Digest: preview.Digest}); f != nil || g.exists("d") || !g.exists("more") {
		t.Error(told(f))
	}
	h := newGround(t)
	_, f = ask(h, h.s.previewDiscard, wire.DiscardIn{})
	wants(h, f, fault.GitUnavailable, "not_a_repository")
}
