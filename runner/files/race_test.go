package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// swaps is how often the trap changes in one race; WEBCODEX_SOAK=1 makes it long.
func swaps() int {
	if os.Getenv("WEBCODEX_SOAK") == "1" {
		return 10_000
	}
	return 600
}

// trap swaps a name between something harmless and something that leads out, until all swaps
// are made, while work runs over and over.
func trap(t *testing.T, swap func(i int), work func()) {
	t.Helper()
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer stop.Store(true)
		for i := range swaps() {
			swap(i)
			time.Sleep(50 * time.Microsecond) // lets the work get in between
		}
	})
	for !stop.Load() {
		work()
	}
	wg.Wait()
}

// exchange swaps two names at once.
func exchange(g *ground, a, b string) {
	if err := renameSwap(unix.AT_FDCWD, filepath.Join(g.dir, a), filepath.Join(g.dir, b)); err != nil {
		g.t.Error(err)
	}
}

// outsideUntouched fails where anything outside the Project or in .git is not as it was.
func outsideUntouched(g *ground, before map[string]string) {
	g.t.Helper()
	for name, now := range g.snapshot() {
		if strings.HasPrefix(name, "proj/") && !strings.HasPrefix(name, "proj/.git") {
			continue
		}
		if before[name] != now {
			g.t.Errorf("%s is now %.60q", name, now)
		}
	}
}

func watched(g *ground) map[string]string {
	all := g.snapshot()
	for name := range all {
		if strings.HasPrefix(name, "proj/") && !strings.HasPrefix(name, "proj/.git") {
			delete(all, name)
		}
	}
	return all
}

// A directory that becomes a link out of the Project, or to .git, while files in it are
// edited, made, moved and deleted.
func TestRaceDirectoryBecomesLink(t *testing.T) {
	for _, target := range []string{"../outside", ".git"} {
		g := newGround(t)
		g.file(".git/secret", secret)
		g.file(".git/f", secret)
		g.must(os.WriteFile(filepath.Join(g.base, "outside", "f"), []byte(secret), 0o644))
		g.file("d/f", "inside 0\n")
		g.link("e", target)
		before := watched(g)
		n := 0
		trap(t, func(int) { exchange(g, "d", "e") }, func() {
			n++
			for _, c := range []wire.Change{editOf("d/f", replaceEdit("inside", "inside")), createOf(fmt.Sprintf("d/new%d", n), "x"),
				editOf("d/f", insertEdit(wire.InsertAfter, "inside", "")), createOf(fmt.Sprintf("d/deep/%d", n), "x")} {
				out, err := g.s.edit(t.Context(), g.p, wire.EditFilesIn{Changes: []wire.Change{c}})
				judgeRace(t, err)
				_ = out
			}
			_, err := g.s.write(t.Context(), g.p, wire.WriteFileIn{Path: "d/f", Content: fmt.Sprintf("inside %d\n", n), Overwrite: true, ExpectedPrefix: ptr("inside")})
			judgeRace(t, err)
			_, err = g.s.remove(t.Context(), g.p, wire.DeleteFilesIn{Paths: []string{fmt.Sprintf("d/new%d", n), "d/secret"}})
			judgeRace(t, err)
		})
		outsideUntouched(g, before)
	}
}

// What was looked at is what is opened: a name that became something else in between is
// noticed, whatever it became.
func TestSwapBetweenLookAndOpen(t *testing.T) {
	for _, swap := range []struct {
		name string
		make func(g *ground, at string) error
	}{
		{"link out", func(g *ground, at string) error { return os.Symlink(filepath.Join(g.base, "outside"), at) }},
		{"link to .git", func(_ *ground, at string) error { return os.Symlink(".git", at) }},
		{"link to a neighbour", func(_ *ground, at string) error { return os.Symlink("other", at) }},
		{"another directory", func(_ *ground, at string) error { return os.Mkdir(at, 0o755) }},
		{"another file", func(_ *ground, at string) error { return os.WriteFile(at, []byte(secret), 0o644) }},
		{"fifo", func(_ *ground, at string) error { return unix.Mkfifo(at, 0o644) }},
		{"nothing", func(*ground, string) error { return nil }},
	} {
		g := newGround(t)
		g.file(".git/x", secret)
		g.file("other/x", secret)
		g.file("d/x", "inside\n")
		g.file("f", "inside\n")
		tr := newTree(g.p.Root)
		defer tr.close()
		info, err := g.p.Root.Lstat("d")
		g.must(err)
		file, err := tr.find([]string{"f"}, finding{})
		g.must(err)
		for _, name := range []string{"d", "f"} {
			at := filepath.Join(g.dir, name)
			g.must(os.Rename(at, at+".old"))
			g.must(swap.make(g, at))
		}
		if err := tr.enter("d", info); fault.KindOf(err) != fault.InvalidPath {
			t.Errorf("%s: the directory was entered: %v", swap.name, err)
		}
		if _, _, err := file.open(); fault.KindOf(err) != fault.InvalidPath {
			t.Errorf("%s: the file was opened: %v", swap.name, err)
		}
	}
}

// Taking back directories that were made leaves what someone put in their place.
func TestUndoingRemovesOnlyItsDirectories(t *testing.T) {
	g := newGround(t)
	g.file("full/x", "x")
	g.file("file", "x")
	g.link("link", "full")
	g.must(os.Mkdir(filepath.Join(g.dir, "mine"), 0o755))
	before := g.snapshot()
	unmake([]madeDir{{g.p.Root, "full"}, {g.p.Root, "file"}, {g.p.Root, "link"}, {g.p.Root, "gone"}, {g.p.Root, "mine"}})
	g.same(before, "proj/mine")
	if g.exists("mine") {
		t.Error("the empty directory is still there")
	}
}

// judgeRace accepts success and the refusals that a swap may cause.
func judgeRace(t *testing.T, err error) {
	t.Helper()
	switch fault.KindOf(err) {
	case "", fault.InvalidPath, fault.EditConflict, fault.TransactionFailed:
		if f := fault.As(err); f != nil && f.StateChanged {
			t.Errorf("half-way: %v", f)
		}
	default:
		t.Errorf("%v", err)
	}
}

// Reads, listings and searches through a swapped directory or file show nothing from outside
// and never hang on a FIFO.
func TestRaceReading(t *testing.T) {
	g := newGround(t)
	g.file(".git/secret", secret)
	g.file("d/secret", "inside\n")
	g.file("f", "inside\n")
	g.link("e", "../outside")
	g.link("l", "../outside/secret")
	g.must(unix.Mkfifo(filepath.Join(g.dir, "fifo"), 0o644))
	for i := range 50 {
		g.file(fmt.Sprintf("pad/%d", i), "inside\n")
	}
	started := time.Now()
	trap(t, func(i int) {
		exchange(g, "d", "e")
		exchange(g, "f", []string{"l", "fifo"}[i%2])
		exchange(g, "f", []string{"l", "fifo"}[i%2])
	}, func() {
		out, err := g.s.read(t.Context(), g.p, wire.ReadFilesIn{Items: []wire.ReadItem{{Path: "d/secret"}, {Path: "f"}, {Path: "e/secret"}, {Path: "l"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range out.Items {
			if strings.Contains(f.Text, "outside") {
				t.Fatalf("%s showed %q", f.Path, f.Text)
			}
		}
		res, err := g.s.searchTexts(t.Context(), g.p, wire.SearchTextsIn{Queries: []wire.SearchQuery{{Pattern: "outside"}, {Pattern: "outside", Path: "d"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Items {
			if len(r.Matches) > 0 {
				t.Fatalf("%+v", r.Matches)
			}
		}
		for _, dir := range []string{"d", "e"} {
			l, err := g.s.list(t.Context(), g.p, wire.ListFilesIn{Path: dir})
			judgeRace(t, err)
			for _, e := range l.Entries {
				if strings.HasSuffix(e.Path, "sub") {
					t.Fatalf("listed %+v", e)
				}
			}
		}
	})
	if d := time.Since(started); d > 5*time.Minute {
		t.Errorf("took %v: something waited", d)
	}
}

// A file that becomes a hard link to one outside keeps that one whole.
func TestRaceFileBecomesHardLink(t *testing.T) {
	g := newGround(t)
	g.file("f", "inside\n")
	before := watched(g)
	outside, f := filepath.Join(g.base, "outside", "secret"), filepath.Join(g.dir, "f")
	trap(t, func(i int) {
		os.Remove(f)
		if i%2 == 0 {
			_ = os.Link(outside, f)
		} else {
			_ = os.WriteFile(f, []byte("inside\n"), 0o644)
		}
	}, func() {
		_, err := g.s.edit(t.Context(), g.p, wire.EditFilesIn{Changes: []wire.Change{editOf("f", replaceEdit("side", "SIDE"))}})
		judgeRace(t, err)
		_, err = g.s.write(t.Context(), g.p, wire.WriteFileIn{Path: "f", Content: "x", Overwrite: true, ExpectedPrefix: ptr("")})
		judgeRace(t, err)
	})
	outsideUntouched(g, before)
}

// Many writers of the same files: each transaction is whole, so both files always agree, and
// no increment is lost.
func TestConcurrentTransactions(t *testing.T) {
	g := newGround(t)
	g.file("a", "count 0\n")
	g.file("b", "count 0\n")
	const writers, rounds = 4, 15
	var made atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < rounds; {
				text := g.one("a").Text
				var n int
				if _, err := fmt.Sscanf(text, "count %d", &n); err != nil {
					t.Errorf("%q", text)
					return
				}
				next := replaceEdit(text, fmt.Sprintf("count %d", n+1))
				_, err := g.s.edit(t.Context(), g.p, wire.EditFilesIn{Changes: []wire.Change{editOf("a", next), editOf("b", next)}})
				switch fault.KindOf(err) {
				case "":
					done++
					made.Add(1)
				case fault.EditConflict:
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	want := fmt.Sprintf("count %d\n", made.Load())
	if made.Load() != writers*rounds || g.text("a") != want || g.text("b") != want {
		t.Errorf("%d made, %q %q", made.Load(), g.text("a"), g.text("b"))
	}
	noLeftovers(g)
}
