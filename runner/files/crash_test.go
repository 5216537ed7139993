package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/runner"
	"webcodex/runner/wire"
)

// dying tells a child what to do and when to die.
type dying struct {
	Dir, Notes string
	Op         string
	At         int  // the point of the transaction at which it dies
	Plain      bool // the file system can neither exchange names nor rename onto a free one only
	Loop       bool // changes without end, until somebody kills it
	Sync       bool
}

const dyingEnv = "WEBCODEX_TEST_DYING"

// withoutAtomicRenames makes the system one that has only links and plain renames.
func withoutAtomicRenames() (back func()) {
	free, swap := renameFree, renameSwap
	renameFree = func(int, string, int, string) error { return unix.ENOSYS }
	renameSwap = func(int, string, string) error { return unix.EINVAL }
	return func() { renameFree, renameSwap = free, swap }
}

// TestDyingChild is not a test: it is the process that the others kill.
func TestDyingChild(t *testing.T) {
	var d dying
	if err := json.Unmarshal([]byte(os.Getenv(dyingEnv)), &d); err != nil {
		t.Skip("only as a child")
	}
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if d.Plain {
		withoutAtomicRenames()
	}
	s := newService(&notebook{dir: d.Notes, sync: d.Sync})
	p := crashProject(d.Dir, root)
	points := 0
	point := func() {
		if points == d.At && !d.Loop {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		points++
	}
	s.between, s.reached = func(int) { point() }, func(string) { point() }
	for n := 0; ; n++ {
		if d.Loop {
			if _, err := s.edit(t.Context(), p, counted(d.Dir, n)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := crashOps[d.Op](t, s, p); err != nil {
			t.Fatal(err)
		}
		return
	}
}

func crashProject(dir string, root *os.Root) *runner.Project {
	return &runner.Project{ID: "proj-00000000", Name: "proj", Path: dir, Root: root, Fingerprint: strings.Repeat("a", 64)}
}

// crashOps are the changes in the middle of which the process dies.
var crashOps = map[string]func(*testing.T, *service, *runner.Project) error{
	"edit": func(t *testing.T, s *service, p *runner.Project) error {
		_, err := s.edit(t.Context(), p, wire.EditFilesIn{Changes: []wire.Change{
			editOf("a", replaceEdit("one", "ONE")), editOf("d/b", replaceEdit("two", "TWO")),
			createOf("n/d/x", "new x"), createOf("n/y", "new y"), createOf("z", ""),
			{Kind: wire.ChangeDelete, Path: "gone", ExpectedSHA256: hashOf([]byte("gone\n"))},
			{Kind: wire.ChangeRename, Path: "d/r", ToPath: "m/r", ExpectedSHA256: hashOf([]byte("moved\n"))}}})
		return err
	},
	"write": func(t *testing.T, s *service, p *runner.Project) error {
		_, err := s.write(t.Context(), p, wire.WriteFileIn{Path: "a", Content: "whole", Overwrite: true, ExpectedPrefix: ptr("one")})
		return err
	},
	"new": func(t *testing.T, s *service, p *runner.Project) error {
		_, err := s.write(t.Context(), p, wire.WriteFileIn{Path: "x/y/z", Content: "whole"})
		return err
	},
	"apply": func(t *testing.T, s *service, p *runner.Project) error {
		c := Changer{s}
		defer c.Exclusive(p)()
		_, err := c.Apply(t.Context(), p, []Wanted{{Path: "a", Content: []byte("whole")}, {Path: "link", Content: []byte("a file now"), Program: true},
			{Path: "d/b", Content: []byte("../a"), Link: true}, {Path: "n/d/x", Content: []byte("nowhere"), Link: true}, {Path: "gone", Gone: true}, {Path: "never", Gone: true}})
		return err
	},
	"delete": func(t *testing.T, s *service, p *runner.Project) error {
		_, err := s.remove(t.Context(), p, wire.DeleteFilesIn{Paths: []string{"a", "link", "d/b"}})
		return err
	},
}

func newCrashGround(t *testing.T) *ground {
	g := newGround(t)
	g.p = crashProject(g.dir, g.p.Root)
	g.file("a", "one\n")
	g.must(os.Chmod(filepath.Join(g.dir, "a"), 0o755))
	g.file("d/b", "two\n")
	g.file("d/r", "moved\n")
	g.file("gone", "gone\n")
	g.link("link", "a")
	return g
}

// die runs a child and reports whether it was killed; else it made its change.
func (g *ground) die(d dying) bool {
	g.t.Helper()
	d.Dir, d.Notes = g.dir, g.s.notes.dir
	args, err := json.Marshal(d)
	g.must(err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestDyingChild$")
	cmd.Env = append(os.Environ(), dyingEnv+"="+string(args))
	if d.Loop {
		g.must(cmd.Start())
		time.Sleep(30*time.Millisecond + time.Duration(rand.IntN(120))*time.Millisecond)
		g.must(cmd.Process.Kill())
		err = cmd.Wait()
	} else {
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			return false
		}
		defer func() {
			if g.t.Failed() {
				g.t.Logf("%s", out)
			}
		}()
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		g.t.Fatalf("the child: %v", err)
	}
	return true
}

// next is the next life: it puts the Project in order before it is served.
func (g *ground) next() {
	g.t.Helper()
	g.s = newService(g.s.notes)
	g.must(g.s.recover(g.p))
	if left, err := g.s.notes.all(); err != nil || len(left) != 0 {
		g.t.Errorf("%d notes are left: %v", len(left), err)
	}
	noLeftovers(g)
	g.must(filepath.WalkDir(g.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Nlink != 1 {
			g.t.Errorf("%s has another name", path)
		}
		return err
	}))
}

// A process that dies at any step of a change leaves, once the next one has looked, all of
// it or nothing of it, and no file of its own.
func TestKilledAtEveryStep(t *testing.T) {
	for op, do := range crashOps {
		for _, plain := range []bool{false, true} {
			done := newCrashGround(t)
			done.must(do(t, done.s, done.p))
			after := done.snapshot()
			sawBefore, sawAfter := false, false
			for at := 0; ; at++ {
				g := newCrashGround(t)
				before := g.snapshot()
				if !g.die(dying{Op: op, At: at, Plain: plain, Sync: at%2 == 0}) {
					if at < 6 {
						t.Errorf("%s has %d points", op, at)
					}
					break
				}
				if ls, err := os.ReadDir(g.s.notes.dir); at < 6 && (err != nil || len(ls) != 1) {
					t.Errorf("%s %d: %d notes, %v", op, at, len(ls), err)
				}
				g.next()
				now := g.snapshot()
				switch {
				case maps.Equal(now, before):
					sawBefore = true
					if sawAfter {
						t.Errorf("%s %d: taken back after it was made", op, at)
					}
				case maps.Equal(now, after):
					sawAfter = true
				default:
					t.Errorf("%s killed at %d (plain %v): half-way", op, at, plain)
					g.same(before)
				}
				if _, f := g.edit(createOf("later", "x")); f != nil {
					t.Errorf("%s %d: a later edit: %s", op, at, told(f))
				}
			}
			if !sawBefore || !sawAfter {
				t.Errorf("%s: taken back %v, finished %v", op, sawBefore, sawAfter)
			}
		}
	}
}

// What somebody does between the death and the next life stays as they did it.
func TestChangesAfterDeathSurvive(t *testing.T) {
	paths := []string{"a", "d/b", "n/d/x", "n/y", "z", "gone", "d/r", "m/r"}
	over := func(g *ground, path string) { // a new file in its place
		g.file(path+".editor", "theirs\n")
		g.must(os.Rename(filepath.Join(g.dir, path+".editor"), filepath.Join(g.dir, path)))
	}
	into := func(g *ground, path string) { g.file(path, "theirs\n") } // the same file, written to
	for how, change := range map[string]func(*ground, string){"over": over, "into": into} {
		for at := 0; ; at += 2 {
			g := newCrashGround(t)
			if !g.die(dying{Op: "edit", At: at, Plain: at%4 == 0}) {
				break
			}
			for i, p := range paths {
				if i%2 == at/2%2 {
					change(g, p)
				}
			}
			g.next()
			for i, p := range paths {
				if i%2 == at/2%2 && g.text(p) != "theirs\n" {
					t.Errorf("%s, killed at %d: %s is %q", how, at, p, g.text(p))
				}
			}
			if _, f := g.edit(editOf(paths[at/2%2], replaceEdit("theirs", "ours"))); f != nil {
				t.Errorf("%s, killed at %d: %s", how, at, told(f))
			}
		}
	}
}

const countedFiles = 6

func counted(dir string, n int) wire.EditFilesIn {
	var in wire.EditFilesIn
	for i := range countedFiles {
		name := fmt.Sprintf("count/%d", i)
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			panic(err)
		}
		in.Changes = append(in.Changes, editOf(name, replaceEdit(string(b), fmt.Sprintf("%d and %d", n, os.Getpid()))))
	}
	in.Changes = append(in.Changes, createOf(fmt.Sprintf("new/%d-%d", os.Getpid(), n), "x"))
	return in
}

// A process killed at any moment while it changes file after file: they always agree.
func TestKilledAtAnyMoment(t *testing.T) {
	g := newCrashGround(t)
	for i := range countedFiles {
		g.file(fmt.Sprintf("count/%d", i), "start")
	}
	rounds := 12
	if os.Getenv("WEBCODEX_SOAK") == "1" {
		rounds = 300
	}
	for round := range rounds {
		g.die(dying{Loop: true, Plain: round%3 == 0})
		g.next()
		for i := range countedFiles {
			if got := g.text(fmt.Sprintf("count/%d", i)); got != g.text("count/0") {
				t.Fatalf("round %d: %q and %q", round, got, g.text("count/0"))
			}
		}
	}
	if g.text("count/0") == "start" {
		t.Error("nothing was killed at work")
	}
}

// halfway makes a transaction that ends in the middle of its last step: it commits all steps
// but that one and gives it to die.
func (g *ground) halfway(die func(), steps ...step) {
	g.t.Helper()
	n, err := g.s.notes.begin(g.p, steps)
	g.must(err)
	for _, st := range steps {
		g.must(st.stage())
	}
	g.must(n.staged(steps))
	for _, st := range steps[:len(steps)-1] {
		g.must(st.commit())
	}
	die()
	n.keep()
}

// Where the system has no atomic exchange a file has two names for a moment. A death in that
// moment leaves it with one.
func TestKilledWithTwoNames(t *testing.T) {
	defer withoutAtomicRenames()()
	g := newCrashGround(t)
	before := g.snapshot()
	pl := &plan{p: g.p}
	defer pl.close()
	find := func(path string, how finding) (place, *tree) {
		tr := pl.tree()
		at, err := tr.find(fields(path), how)
		g.must(err)
		return at, tr
	}
	link := func(a, b string) func() {
		return func() { g.must(os.Link(filepath.Join(g.dir, a), filepath.Join(g.dir, b))) }
	}
	a, _ := find("a", finding{})
	b, _ := find("d/b", finding{})
	edit := func() step { return step{action: &replace{at: a, before: []byte("one\n"), after: []byte("ONE\n")}} }
	rep := &replace{at: b, before: []byte("two\n"), after: []byte("TWO\n")}
	g.halfway(func() { link("d/b", "d/"+rep.backup)() }, edit(), step{action: rep})
	g.next()
	g.same(before)
	at, tr := find("n/x", finding{create: true})
	cr := &create{tree: tr, at: at, content: []byte("x")}
	a, _ = find("a", finding{})
	g.halfway(func() { link("n/"+cr.temp, "n/x")() }, edit(), step{action: cr})
	g.next()
	g.same(before)
	from, _ := find("d/r", finding{})
	to, tr := find("m/r", finding{create: true})
	a, _ = find("a", finding{})
	g.halfway(link("d/r", "m/r"), edit(), step{action: &rename{from: from, to: to, tree: tr}})
	g.next()
	g.same(before)
}

// Notes of other Projects wait for theirs, but not without end; a note that was never
// finished is nothing.
func TestNotesOfOthersWait(t *testing.T) {
	g := newCrashGround(t)
	if !g.die(dying{Op: "edit", At: 12}) {
		t.Fatal("it lived")
	}
	dead := g.snapshot()
	other := crashProject(g.dir, g.p.Root)
	other.ID = "proj-11111111"
	g.must(g.s.recover(other))
	g.same(dead)
	notes, err := g.s.notes.all()
	if err != nil || len(notes) != 1 {
		t.Fatal(notes, err)
	}
	text, err := os.ReadFile(notes[0])
	g.must(err)
	torn, _, _ := strings.Cut(string(text), "\n")
	g.must(os.WriteFile(filepath.Join(g.s.notes.dir, "torn"), []byte(torn), 0o600))
	old := time.Now().Add(-time.Hour)
	for i := range maxNotes + 5 {
		path := filepath.Join(g.s.notes.dir, fmt.Sprintf("old%d", i))
		g.must(os.WriteFile(path, []byte(`{"version":1,"project":"gone-00000000"}`+"\n"), 0o600))
		g.must(os.Chtimes(path, old, old))
	}
	g.must(g.s.recover(g.p))
	left, err := os.ReadDir(g.s.notes.dir)
	g.must(err)
	if len(left) > maxNotes || slices.ContainsFunc(left, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), "old") }) {
		t.Errorf("%d notes are left", len(left))
	}
	noLeftovers(g)
	if info, err := os.Stat(g.s.notes.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
}

// A note that cannot be written is a refusal, and nothing was changed.
func TestNoNoteNoChange(t *testing.T) {
	g := newCrashGround(t)
	before := g.snapshot()
	g.must(os.WriteFile(g.s.notes.dir, nil, 0o600))
	_, f := g.edit(editOf("a", replaceEdit("one", "two")))
	if f == nil || f.StateChanged {
		t.Error(told(f))
	}
	g.same(before)
}
