package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// hostileGround has every kind of bad name that a repository can hold.
func hostileGround(t testing.TB) *ground {
	g := newGround(t)
	g.file("a.txt", "one\ntwo\n")
	g.file("d/b.txt", "three\n")
	g.link("out", "../outside")
	g.link("outfile", "../outside/secret")
	g.link("abs", filepath.Join(g.base, "outside"))
	g.link("dangling-out", "../outside/not-there-yet")
	g.link("up", "d/../../outside")
	g.link("loop", "loop")
	g.link("loop-a", "loop-b")
	g.link("loop-b", "loop-a")
	g.link("sneak", ".git")
	g.link("sneak-deep", "d/../.git/hooks")
	g.file(".git/config", "[core]\n")
	g.file(".git/hooks/sample", "#!/bin/sh\n")
	g.file("nested/.git/config", "[core]\n")
	g.file("bare.git/HEAD", "ref: refs/heads/main\n")
	g.file("bare.git/config", "[core]\n")
	g.file("bare.git/objects/info/x", "")
	g.file("bare.git/refs/heads/x", "")
	g.must(unix.Mkfifo(filepath.Join(g.dir, "fifo"), 0o644))
	g.must(os.Link(filepath.Join(g.base, "outside", "secret"), filepath.Join(g.dir, "hard")))
	return g
}

// badPaths are refused by every op that names a file, for the given reason.
func badPaths() map[string]string {
	deep := strings.Repeat("a/", 2100)
	bad := map[string]string{
		"/etc/passwd": reasonAbsolute, "/": reasonAbsolute, "//a.txt": reasonAbsolute,
		"..": reasonOutside, "../outside/secret": reasonOutside, "../proj-evil/secret": reasonOutside,
		"d/../../outside/secret": reasonOutside, "d/../a.txt": reasonOutside, "a.txt/..": reasonOutside,
		"out/secret": reasonSymlinkOutside, "out/sub/secret": reasonSymlinkOutside, "outfile/x": reasonSymlinkOutside,
		"abs/secret": reasonSymlinkOutside, "up/secret": reasonSymlinkOutside, "out/new/file": reasonSymlinkOutside,
		"loop/x": reasonSymlinkLoop, "loop-a/x": reasonSymlinkLoop,
		"a\x00b": reasonNUL, "a.txt\x00": reasonNUL,
		deep: reasonTooLong, strings.Repeat("x", 4096): reasonTooLong, strings.Repeat("y", 256): reasonTooLong,
		strings.Repeat("b/", 300) + "c": reasonTooLong,
		"a\xffb":                        reasonNotUTF8, "\xed\xa0\x80": reasonNotUTF8,
		"": reasonEmpty, ".": reasonEmpty, "./": reasonEmpty,
		"a.txt/x": reasonNotDirectory, "fifo/x": reasonNotDirectory,
		"sneak/config": reasonGitInternal, "sneak-deep/sample": reasonGitInternal, "sneak-deep/new": reasonGitInternal,
		"bare.git/config": reasonGitInternal, "bare.git/hooks/post-update": reasonGitInternal,
	}
	for _, git := range gitSpellings {
		bad[git+"/config"] = reasonGitInternal
		bad["nested/"+git+"/config"] = reasonGitInternal
		bad["new/"+git+"/hooks/pre-commit"] = reasonGitInternal
		bad[git] = reasonGitInternal
	}
	return bad
}

var gitSpellings = []string{
	".git", ".GIT", ".Git", ".gIt", ".git.", ".git..", ".git ", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x", ".GIT:$DATA",
	"git~1", "GIT~1", ".g\u200cit", ".\u200dgit", ".gi\ufefft", "\u200e.git", ".git\u202e", ".gi\u2060t", "\uff0egit", ".g\u00adit",
	`d\.git`, `.git\hooks`,
}

// Every op that takes a path refuses a bad one and leaves everything as it was.
func TestBadPaths(t *testing.T) {
	g := hostileGround(t)
	before := g.snapshot()
	sha := strings.Repeat("0", 64)
	for path, reason := range badPaths() {
		if f := g.one(path); f.Success || f.ErrorKind != string(fault.InvalidPath) || f.Reason != reason || f.Text != "" {
			t.Errorf("read %.40q: %+v, want %s", path, f, reason)
		}
		check := func(op string, f *fault.Error, field, reason string) {
			t.Helper()
			if f == nil || f.Kind != fault.InvalidPath || f.Reason != reason || f.Field != field || f.StateChanged {
				t.Errorf("%s %.40q: %s, want %s", op, path, told(f), reason)
			}
		}
		_, f := ask(g, g.s.searchFile, wire.SearchFileIn{Path: path, Pattern: "x"})
		check("search_file", f, "path", reason)
		for _, c := range []wire.Change{
			{Kind: wire.ChangeDelete, Path: path, ExpectedSHA256: sha},
			{Kind: wire.ChangeRename, Path: path, ToPath: "free", ExpectedSHA256: sha},
			editOf(path, replaceEdit("one", "1")),
		} {
			_, f = g.edit(c)
			check(c.Kind, f, "changes[0].path", reason)
		}
		_, f = g.edit(createOf("fine", "x"), createOf(path, "x"))
		check("create", f, "changes[1].path", reason)
		if path != "" {
			_, f = g.edit(wire.Change{Kind: wire.ChangeRename, Path: "a.txt", ToPath: path, ExpectedSHA256: g.sha("a.txt")})
			check("rename to", f, "changes[0].to_path", reason)
		}
		_, f = ask(g, g.s.write, wire.WriteFileIn{Path: path, Content: "x"})
		check("write", f, "path", reason)
		_, f = ask(g, g.s.remove, wire.DeleteFilesIn{Paths: []string{"a.txt", path}})
		check("delete", f, "paths[1]", reason)
	}
	g.same(before)
}

func TestBadDirectories(t *testing.T) {
	g := hostileGround(t)
	bad := map[string]string{
		"/": reasonAbsolute, "..": reasonOutside, "out": reasonSymlinkOutside, "abs": reasonSymlinkOutside, "up": reasonSymlinkOutside,
		"sneak": reasonGitInternal, "bare.git": reasonGitInternal, ".git": reasonGitInternal, ".GIT/hooks": reasonGitInternal,
		"fifo": reasonNotDirectory, "a.txt": reasonNotDirectory, "gone": reasonNotFound, "loop": reasonSymlinkLoop, "d\x00": reasonNUL,
	}
	for path, reason := range bad {
		_, f := ask(g, g.s.list, wire.ListFilesIn{Path: path})
		wants(g, f, fault.InvalidPath, reason)
		_, f = ask(g, g.s.overview, wire.OverviewIn{Path: path})
		wants(g, f, fault.InvalidPath, reason)
		r := g.search(wire.SearchQuery{Pattern: ".", Path: path})
		switch path {
		case "a.txt":
			if !r.Success {
				t.Errorf("search in a file: %+v", r)
			}
			continue
		case "fifo":
			reason = reasonNotRegular
		}
		if r.Success || r.ErrorKind != string(fault.InvalidPath) || r.Reason != reason {
			t.Errorf("search in %q: %+v, want %s", path, r, reason)
		}
	}
}

// What is no regular file is neither read nor changed, and nothing waits for a FIFO.
func TestOnlyRegularFiles(t *testing.T) {
	g := hostileGround(t)
	special := map[string]string{"fifo": reasonNotRegular, "d": reasonNotRegular}
	if unix.Mknod(filepath.Join(g.dir, "zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) == nil {
		special["zero"] = reasonNotRegular
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	g.must(err)
	defer unix.Close(fd)
	if unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(g.dir, "socket")}) == nil {
		special["socket"] = reasonNotRegular
	}
	before := g.snapshot()
	sha := strings.Repeat("0", 64)
	for path, reason := range special {
		if f := g.one(path); f.Reason != reason {
			t.Errorf("read %s: %+v", path, f)
		}
		for _, c := range []wire.Change{editOf(path, replaceEdit("a", "b")), {Kind: wire.ChangeDelete, Path: path, ExpectedSHA256: sha},
			{Kind: wire.ChangeRename, Path: path, ToPath: "free", ExpectedSHA256: sha}} {
			_, f := g.edit(c)
			wants(g, f, fault.InvalidPath, reason)
		}
		_, f := g.edit(createOf(path, "x"))
		wants(g, f, fault.InvalidPath, reasonExists)
		_, f = ask(g, g.s.write, wire.WriteFileIn{Path: path, Content: "x", Overwrite: true, ExpectedSHA256: sha})
		wants(g, f, fault.InvalidPath, reason)
		_, f = ask(g, g.s.remove, wire.DeleteFilesIn{Paths: []string{path}})
		wants(g, f, fault.InvalidPath, reason)
	}
	g.same(before)
}

// A hard link could be a file outside: its content is never overwritten.
func TestHardLinkToOutsideIsNotWritten(t *testing.T) {
	g := hostileGround(t)
	before := g.snapshot()
	_, f := g.edit(editOf("hard", replaceEdit("outside", "inside")))
	wants(g, f, fault.InvalidPath, reasonHardLink)
	_, f = ask(g, g.s.write, wire.WriteFileIn{Path: "hard", Content: "x", Overwrite: true, ExpectedSHA256: hashOf([]byte(secret))})
	wants(g, f, fault.InvalidPath, reasonHardLink)
	g.same(before)
}

// Links that lead out are no way to read, change, replace or make something, whether their
// target exists or not.
func TestLinksThatLeadOut(t *testing.T) {
	g := hostileGround(t)
	before := g.snapshot()
	sha := hashOf([]byte(secret))
	for _, path := range []string{"outfile", "dangling-out"} {
		if f := g.one(path); f.Success || f.Reason != reasonSymlinkOutside {
			t.Errorf("read %s: %+v", path, f)
		}
		_, f := g.edit(editOf(path, replaceEdit("outside", "x")))
		wants(g, f, fault.InvalidPath, reasonSymlinkOutside)
		_, f = g.edit(createOf(path, "x"))
		wants(g, f, fault.InvalidPath, reasonSymlinkOutside)
		_, f = ask(g, g.s.write, wire.WriteFileIn{Path: path, Content: "x"})
		wants(g, f, fault.InvalidPath, reasonSymlinkOutside)
		_, f = ask(g, g.s.write, wire.WriteFileIn{Path: path, Content: "x", Overwrite: true, ExpectedSHA256: sha})
		wants(g, f, fault.InvalidPath, reasonSymlinkOutside)
		_, f = g.edit(wire.Change{Kind: wire.ChangeDelete, Path: path, ExpectedSHA256: sha})
		wants(g, f, fault.InvalidPath, reasonSymlink)
		_, f = g.edit(wire.Change{Kind: wire.ChangeRename, Path: path, ToPath: "x", ExpectedSHA256: sha})
		wants(g, f, fault.InvalidPath, reasonSymlink)
	}
	g.same(before)
	// The link itself may go: that touches nothing behind it.
	out, f := ask(g, g.s.remove, wire.DeleteFilesIn{Paths: []string{"outfile", "dangling-out", "out"}})
	if f != nil || len(out.Deleted) != 3 {
		t.Fatalf("%+v %s", out, told(f))
	}
	g.same(before, "proj/outfile", "proj/dangling-out", "proj/out")
}

// Links inside the Project work, and answers name the real file.
func TestLinksInside(t *testing.T) {
	g := newGround(t)
	g.file("real/AGENTS.md", "rules\n")
	g.link("CLAUDE.md", "real/AGENTS.md")
	g.link("real/up", "..")
	g.link("dir", "real")
	for _, path := range []string{"CLAUDE.md", "dir/AGENTS.md", "real/up/real/AGENTS.md", "dir/up/dir/up/CLAUDE.md"} {
		if f := g.one(path); !f.Success || f.Path != "real/AGENTS.md" || f.Text != "rules" {
			t.Errorf("%s: %+v", path, f)
		}
	}
	out, f := g.edit(editOf("CLAUDE.md", replaceEdit("rules", "more rules")))
	if f != nil || out.ChangedPaths[0] != "real/AGENTS.md" || g.text("real/AGENTS.md") != "more rules\n" {
		t.Errorf("%+v %s", out, told(f))
	}
	if to, err := os.Readlink(filepath.Join(g.dir, "CLAUDE.md")); err != nil || to != "real/AGENTS.md" {
		t.Errorf("the link became %q %v", to, err)
	}
	if out, f := g.edit(createOf("dir/sub/new.txt", "x")); f != nil || out.ChangedPaths[0] != "real/sub/new.txt" || g.text("real/sub/new.txt") != "x" {
		t.Errorf("%+v %s", out, told(f))
	}
	// Two names of one file are one file.
	_, f = g.edit(editOf("CLAUDE.md", replaceEdit("more", "x")), editOf("dir/AGENTS.md", replaceEdit("rules", "y")))
	wants(g, f, fault.InvalidArguments, "duplicate_path")
}

// A Project that is itself a git directory has no files to offer.
func TestBareRepositoryAsProject(t *testing.T) {
	g := newGround(t)
	g.git("init", "-q", "--bare")
	before := g.snapshot()
	if f := g.one("config"); f.Reason != reasonGitInternal {
		t.Errorf("read: %+v", f)
	}
	_, f := g.edit(createOf("hooks/post-update", "#!/bin/sh\n"))
	wants(g, f, fault.InvalidPath, reasonGitInternal)
	_, f = ask(g, g.s.list, wire.ListFilesIn{})
	wants(g, f, fault.InvalidPath, reasonGitInternal)
	if r := g.search(wire.SearchQuery{Pattern: "core"}); r.Success {
		t.Errorf("search: %+v", r)
	}
	g.same(before)
}

// A worktree's git directory that was put into the Project is one too.
func TestWorktreeGitDirectoryInside(t *testing.T) {
	g := newGround(t)
	g.file("gd/HEAD", "ref: refs/heads/x\n")
	g.file("gd/commondir", "../real\n")
	_, f := g.edit(createOf("gd/config.worktree", "[core]\n"))
	wants(g, f, fault.InvalidPath, reasonGitInternal)
}

// FuzzPath makes files under arbitrary names in a hostile tree: whatever is accepted lies
// inside the Project, outside of any git directory, and can be read back and deleted.
func FuzzPath(f *testing.F) {
	for p := range badPaths() {
		f.Add(p)
	}
	for _, p := range []string{"a", "d/e/f", "out", "sneak", "new/.gitignore", "x/./y", "a//b", "-rf", "\"q\"", "a\nb", "é/e\u0301", "💥/x", "d/", "...", ".git2", "x.git/y"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, path string) {
		g := hostileGround(t)
		before := g.snapshot()
		out, err := g.s.write(t.Context(), g.p, wire.WriteFileIn{Path: path, Content: "fuzz"})
		if err != nil {
			if k := fault.KindOf(err); k != fault.InvalidPath {
				t.Fatalf("%q: %v", path, err)
			}
			g.same(before)
			return
		}
		for name, what := range g.snapshot() {
			if before[name] == what {
				continue
			}
			inside := strings.HasPrefix(name, "proj/")
			rel := strings.TrimPrefix(name, "proj/")
			if !inside || rel != out.Path && !strings.HasPrefix(out.Path, rel+"/") {
				t.Fatalf("%q changed %q", path, name)
			}
			for _, part := range strings.Split(rel, "/") {
				if strings.EqualFold(strings.Trim(part, ". "), "git") {
					t.Fatalf("%q made %q", path, name)
				}
			}
		}
		if got := g.one(path); !got.Success || got.Text != "fuzz" || got.Path != out.Path {
			t.Fatalf("%q: %+v", path, got)
		}
		if _, err := g.s.remove(t.Context(), g.p, wire.DeleteFilesIn{Paths: []string{path}}); err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		if g.exists(out.Path) {
			t.Fatalf("%q is still there", path)
		}
	})
}

// A path that ends like a directory's names no file, whatever is there.
func TestTrailingSlashNamesNoFile(t *testing.T) {
	g := newGround(t)
	g.file("a.go", "a\n")
	g.file("d/b", "b\n")
	g.link("to-file", "a.go")
	g.link("to-dir", "d")
	before := g.snapshot()
	sha := g.sha("a.go")
	for path, reason := range map[string]string{"a.go/": reasonNotDirectory, "a.go//": reasonNotDirectory, "a.go/.": reasonNotDirectory,
		"d/b/": reasonNotDirectory, "to-file/": reasonNotDirectory, "d/": reasonNotRegular, "d/./": reasonNotRegular, "to-dir/": reasonNotRegular} {
		if f := g.one(path); f.Success || f.Reason != reason {
			t.Errorf("read %q: %+v", path, f)
		}
		_, f := g.edit(editOf(path, replaceEdit("a", "b")))
		wants(g, f, fault.InvalidPath, reason)
		_, f = g.edit(wire.Change{Kind: wire.ChangeDelete, Path: path, ExpectedSHA256: sha})
		wants(g, f, fault.InvalidPath, reason)
		_, f = ask(g, g.s.write, wire.WriteFileIn{Path: path, Content: "x", Overwrite: true, ExpectedSHA256: sha})
		wants(g, f, fault.InvalidPath, reason)
		_, f = ask(g, g.s.remove, wire.DeleteFilesIn{Paths: []string{path}})
		wants(g, f, fault.InvalidPath, reason)
	}
	for _, path := range []string{"new/", "new/deep/"} {
		_, f := ask(g, g.s.write, wire.WriteFileIn{Path: path, Content: "x"})
		wants(g, f, fault.InvalidPath, reasonNotDirectory)
		_, f = g.edit(createOf(path, "x"))
		wants(g, f, fault.InvalidPath, reasonNotDirectory)
		_, f = g.edit(wire.Change{Kind: wire.ChangeRename, Path: "a.go", ToPath: path, ExpectedSHA256: sha})
		wants(g, f, fault.InvalidPath, reasonNotDirectory)
		out, f := ask(g, g.s.remove, wire.DeleteFilesIn{Paths: []string{path}})
		if f != nil || len(out.Missing) != 1 || out.Missing[0] != strings.TrimSuffix(path, "/") {
			t.Errorf("%+v %s", out, told(f))
		}
	}
	g.same(before)
}
