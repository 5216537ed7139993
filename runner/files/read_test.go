package files

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func readRange(g *ground, path string, start, limit int) wire.ReadFile {
	g.t.Helper()
	out, f := ask(g, g.s.read, wire.ReadFilesIn{Items: []wire.ReadItem{{Path: path, StartLine: start, Limit: limit}}})
	if f != nil {
		g.t.Fatal(told(f))
	}
	return out.Items[0]
}

func TestReadRanges(t *testing.T) {
	g := newGround(t)
	for _, tc := range []struct {
		name, content string
		start, limit  int
		text          string
		end, total    int
		next          int // 0: none
		eol           string
	}{
		{"all", "a\nb\nc\n", 0, 0, "a\nb\nc", 3, 3, 0, "lf"},
		{"no end of line at the end", "a\nb", 1, 10, "a\nb", 2, 2, 0, "lf"},
		{"empty", "", 1, 10, "", 0, 0, 0, "lf"},
		{"one empty line", "\n", 1, 10, "", 1, 1, 0, "lf"},
		{"first two", "a\nb\nc\n", 1, 2, "a\nb", 2, 3, 3, "lf"},
		{"middle", "a\nb\nc\n", 2, 1, "b", 2, 3, 3, "lf"},
		{"last", "a\nb\nc\n", 3, 1, "c", 3, 3, 0, "lf"},
		{"beyond", "a\n", 5, 1, "", 4, 1, 0, "lf"},
		{"crlf", "a\r\nb\r\n", 1, 10, "a\nb", 2, 2, 0, "crlf"},
		{"mixed", "a\r\nb\nc\r\n", 1, 10, "a\nb\nc", 3, 3, 0, "mixed"},
		{"carriage returns alone", "a\rb\r\r\n", 1, 10, "a\rb\r", 1, 1, 0, "crlf"},
		{"byte order mark", "\ufeffa\n", 1, 10, "\ufeffa", 1, 1, 0, "lf"},
	} {
		g.file("f", tc.content)
		f := readRange(g, "f", tc.start, tc.limit)
		next := 0
		if f.NextStartLine != nil {
			next = *f.NextStartLine
		}
		if !f.Success || f.Text != tc.text || f.EndLine != tc.end || f.TotalLines != tc.total || next != tc.next || f.EOL != tc.eol ||
			f.Truncated != (tc.next > 0) || f.SHA256 != hashOf([]byte(tc.content)) || f.Bytes != int64(len(tc.content)) || f.Binary {
			t.Errorf("%s: %+v", tc.name, f)
		}
	}
}

func TestReadNumbered(t *testing.T) {
	g := newGround(t)
	g.file("f", "a\nb\nc\n")
	out, f := ask(g, g.s.read, wire.ReadFilesIn{LineNumbers: true, Items: []wire.ReadItem{{Path: "f", StartLine: 2}}})
	if f != nil || out.Items[0].Text != "2\tb\n3\tc" {
		t.Errorf("%+v %s", out, told(f))
	}
}

// One bad item does not spoil the others, and each tells its own kind.
func TestReadBatch(t *testing.T) {
	g := newGround(t)
	g.file("a", "a\n")
	g.file("bin", "a\x00b\n")
	g.file("latin", "caf\xe9\n")
	out, f := ask(g, g.s.read, wire.ReadFilesIn{Items: []wire.ReadItem{{Path: "a"}, {Path: "gone"}, {Path: "../x"}, {Path: "bin"}, {Path: "latin"}}})
	if f != nil || out.Returned != 3 || out.Truncated {
		t.Fatalf("%+v %s", out, told(f))
	}
	for i, item := range out.Items {
		if item.Index != i {
			t.Errorf("item %d has index %d", i, item.Index)
		}
	}
	if a := out.Items[1]; a.Success || a.ErrorKind != string(fault.InvalidPath) || a.Reason != reasonNotFound || a.Path != "gone" || a.Error == "" {
		t.Errorf("%+v", a)
	}
	if a := out.Items[3]; !a.Success || !a.Binary || a.Text != "" || a.SHA256 != g.sha("bin") {
		t.Errorf("%+v", a)
	}
	if a := out.Items[4]; !a.Success || a.Text != "caf\uFFFD" || !a.InvalidUTF8 {
		t.Errorf("%+v", a)
	}
	for _, n := range []int{0, wire.MaxReadItems + 1} {
		_, f = ask(g, g.s.read, wire.ReadFilesIn{Items: make([]wire.ReadItem, n)})
		wants(g, f, fault.InvalidArguments, "")
	}
}

// The answer holds 40,000 characters; what does not fit is told and can be read on.
func TestReadBudget(t *testing.T) {
	g := newGround(t)
	line := strings.Repeat("é", 99) + "\n"
	content := strings.Repeat(line, 600) // 60,000 characters
	g.file("a", content)
	out, f := ask(g, g.s.read, wire.ReadFilesIn{Items: []wire.ReadItem{{Path: "a"}, {Path: "a"}}})
	if f != nil {
		t.Fatal(told(f))
	}
	first, second := out.Items[0], out.Items[1]
	if n := utf8.RuneCountInString(first.Text); n > wire.MaxResultChars || n < wire.MaxResultChars-100 || !first.Truncated {
		t.Errorf("%d characters", n)
	}
	if second.Success || second.ErrorKind != string(fault.OutputBudgetExceeded) || !out.Truncated || second.Text != "" {
		t.Errorf("%+v", second)
	}
	// What the first leaves is less than a line of the second: nothing of it is lost unseen.
	g.file("c", strings.Repeat(strings.Repeat("z", 69)+"\n", 600))
	if out, f = ask(g, g.s.read, wire.ReadFilesIn{Items: []wire.ReadItem{{Path: "c"}, {Path: "a", StartLine: 10}}}); f != nil {
		t.Fatal(told(f))
	}
	if second = out.Items[1]; second.Success || second.ErrorKind != string(fault.OutputBudgetExceeded) || second.Text != "" {
		t.Errorf("%+v", second)
	}
	var all strings.Builder
	for start := 1; ; {
		p := readRange(g, "a", start, 0)
		all.WriteString(p.Text + "\n")
		if p.NextStartLine == nil {
			break
		}
		start = *p.NextStartLine
	}
	if all.String() != content {
		t.Error("the pages together are not the file")
	}
}

// A line larger than the whole answer is cut between characters, at every offset.
func TestReadLongLine(t *testing.T) {
	g := newGround(t)
	for shift := range 4 {
		content := strings.Repeat("x", shift) + strings.Repeat("😀", wire.MaxResultChars+10) + "\nnext\n"
		g.file("long", content)
		f := readRange(g, "long", 1, 0)
		if !utf8.ValidString(f.Text) || utf8.RuneCountInString(f.Text) != wire.MaxResultChars || !strings.HasPrefix(content, f.Text) ||
			!f.Truncated || !f.LineTruncated || f.EndLine != 1 || f.NextStartLine == nil || *f.NextStartLine != 2 || f.InvalidUTF8 {
			t.Errorf("shift %d: %d characters, %+v", shift, utf8.RuneCountInString(f.Text), f.NextStartLine)
		}
		if p := readRange(g, "long", 2, 0); p.Text != "next" {
			t.Errorf("%+v", p)
		}
	}
	// Not the first: it waits for the next page.
	g.file("b", "short\n"+strings.Repeat("y", 2*wire.MaxResultChars))
	if f := readRange(g, "b", 1, 0); f.Text != "short" || *f.NextStartLine != 2 {
		t.Errorf("%d %v", len(f.Text), f.NextStartLine)
	}
}

// Lines that end right at the edges of the reader's buffer keep their ends.
func TestReadAcrossBuffers(t *testing.T) {
	g := newGround(t)
	for n := 64<<10 - 3; n < 64<<10+3; n++ {
		g.file("edge", strings.Repeat("x", n)+"\r\nnext\r\n")
		f := readRange(g, "edge", 2, 0)
		if f.Text != "next" || f.EOL != wire.EOLCRLF || f.TotalLines != 2 || f.SHA256 != g.sha("edge") {
			t.Errorf("%d: %+v", n, f)
		}
	}
}

func TestReadTooLarge(t *testing.T) {
	g := newGround(t)
	f, err := g.p.Root.Create("huge")
	g.must(err)
	g.must(f.Truncate(maxReadBytes + 1))
	f.Close()
	if r := g.one("huge"); r.Success || r.Reason != reasonTooLarge {
		t.Errorf("%+v", r)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	g := newGround(t)
	g.file("a", strings.Repeat("x\n", 100_000))
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := g.s.read(ctx, g.p, wire.ReadFilesIn{Items: []wire.ReadItem{{Path: "a"}}}); fault.KindOf(err) != fault.Timeout {
		t.Error(err)
	}
}

// oddNames are legal names that tools trip over.
var oddNames = []string{
	"with space", " lead", "trail ", "emoji 💥", `quo"te`, "apos'trophe", "new\nline", "tab\t", "-rf", "--help", "$HOME", "`id`", "*", "?.txt",
	"[a]", "{a,b}", "back\\slash", "e\u0301 nfd", "\u00e9 nfc", "日本語", "…", "a:b", "#hash", "~", "%41", "!bang", ".hidden", "..dots", "...", "git~", "x.git",
}

func TestOddNames(t *testing.T) {
	g := newGround(t)
	for i, name := range oddNames {
		text := fmt.Sprintf("content %d needle\n", i)
		path := "dir " + name + "/" + name
		if _, f := g.edit(createOf(path, text)); f != nil {
			t.Fatalf("%q: %s", name, told(f))
		}
		if r := g.one(path); r.Text+"\n" != text || r.Path != path {
			t.Errorf("%q: %+v", name, r)
		}
		if r := g.search(wire.SearchQuery{Pattern: "needle", Path: path}); r.Count != 1 || r.Matches[0].Path != path {
			t.Errorf("%q: %+v", name, r)
		}
		if r := g.search(wire.SearchQuery{Pattern: "needle", Path: "dir " + name}); r.Count != 1 || r.Matches[0].Path != path {
			t.Errorf("%q: %+v", name, r)
		}
		l, f := ask(g, g.s.list, wire.ListFilesIn{Path: "dir " + name})
		if f != nil || len(l.Entries) != 1 || l.Entries[0].Path != path {
			t.Errorf("%q: %+v %s", name, l, told(f))
		}
		if _, f := g.edit(wire.Change{Kind: wire.ChangeRename, Path: path, ToPath: path + "2", ExpectedSHA256: g.sha(path)}); f != nil {
			t.Errorf("%q: %s", name, told(f))
		}
		if _, f := g.edit(editOf(path+"2", replaceEdit("needle", "thread"))); f != nil {
			t.Errorf("%q: %s", name, told(f))
		}
		if out, f := ask(g, g.s.remove, wire.DeleteFilesIn{Paths: []string{path + "2"}}); f != nil || len(out.Deleted) != 1 {
			t.Errorf("%q: %+v %s", name, out, told(f))
		}
	}
}

// A name that is not UTF-8 is shown, is searched, and cannot be named back.
func TestNamesThatAreNotUTF8(t *testing.T) {
	g := newGround(t)
	g.file("bad\xff%name", "needle\n")
	l, f := ask(g, g.s.list, wire.ListFilesIn{})
	if f != nil || l.Entries[0].Path != "bad%FF%25name" || !l.Entries[0].Lossy {
		t.Errorf("%+v %s", l, told(f))
	}
	if r := g.search(wire.SearchQuery{Pattern: "needle"}); r.Count != 1 || r.Matches[0].Path != "bad%FF%25name" || !r.Matches[0].Lossy {
		t.Errorf("%+v", r)
	}
	if r := g.one("bad%FF%25name"); r.Reason != reasonNotFound {
		t.Errorf("%+v", r)
	}
}

func TestListDirectory(t *testing.T) {
	g := newGround(t)
	g.file("b.txt", "12345")
	g.file("a/x", "")
	g.file(".git/config", "")
	g.file(".hidden", "")
	g.link("link", "a")
	l, f := ask(g, g.s.list, wire.ListFilesIn{Limit: 10})
	if f != nil {
		t.Fatal(told(f))
	}
	var got []string
	for _, e := range l.Entries {
		s := e.Kind + " " + e.Path
		if e.Bytes != nil {
			s += fmt.Sprint(" ", *e.Bytes)
		}
		got = append(got, s)
	}
	if strings.Join(got, ", ") != "dir a, file .hidden 0, file b.txt 5, symlink link" || l.Total != 4 || l.Truncated || l.Path != "." || !l.TotalComplete {
		t.Errorf("%v %+v", got, l)
	}
	if l, f = ask(g, g.s.list, wire.ListFilesIn{Path: "link/", Limit: 1}); f != nil || l.Path != "a" || l.Entries[0].Path != "a/x" {
		t.Errorf("%+v %s", l, told(f))
	}
	if l, _ = ask(g, g.s.list, wire.ListFilesIn{Limit: 2}); l.Returned != 2 || !l.Truncated || l.Total != 4 {
		t.Errorf("%+v", l)
	}
}

// However long the names, a listing and an overview stay within what an answer may show.
func TestListingsAreBounded(t *testing.T) {
	g := newGround(t)
	for i := range 900 {
		g.file(fmt.Sprintf("long/%s%d", strings.Repeat("n", 200), i), "")
	}
	l, f := ask(g, g.s.list, wire.ListFilesIn{Path: "long", Limit: wire.MaxListFiles})
	enc, _ := json.Marshal(l)
	if f != nil || len(enc) > wire.MaxResultChars+1000 || !l.Truncated || l.Total != 900 || l.Returned != len(l.Entries) {
		t.Errorf("%d bytes, %d of %d %s", len(enc), l.Returned, l.Total, told(f))
	}
	o, f := ask(g, g.s.overview, wire.OverviewIn{Path: "long", Limit: wire.MaxOverviewLimit})
	if enc, _ = json.Marshal(o); f != nil || len(enc) > wire.MaxResultChars+1000 || !o.Scan.Truncated {
		t.Errorf("%d bytes %s", len(enc), told(f))
	}
}

func TestOverview(t *testing.T) {
	g := newGround(t)
	for _, f := range []string{"go.mod", "README.md", "AGENTS.md", "Makefile", "cmd/x/main.go", "internal/a/a.go", "docs/index.md",
		"web/package.json", "web/node_modules/dep/package.json", "testdata/t", ".git/config", "deep/a/b/c/go.mod"} {
		g.file(f, "")
	}
	o, f := ask(g, g.s.overview, wire.OverviewIn{})
	if f != nil {
		t.Fatal(told(f))
	}
	if strings.Join(o.ProjectTypes, " ") != "go node" || len(o.Manifests) != 2 || o.Scan.Truncated || o.Scan.MaxDepth != wire.OverviewDepth {
		t.Errorf("%+v", o)
	}
	if len(o.Suggested) == 0 || o.Suggested[0].Path != "AGENTS.md" || o.Suggested[1].Path != "README.md" {
		t.Errorf("%+v", o.Suggested)
	}
	if strings.Join(o.Roots.Source, " ") != "cmd internal" || strings.Join(o.Roots.Docs, " ") != "docs" || strings.Join(o.Roots.Tests, " ") != "testdata" {
		t.Errorf("%+v", o.Roots)
	}
	skipped := false
	for _, d := range o.Directories {
		skipped = skipped || d.Path == "web/node_modules" && d.Skipped
		if strings.Contains(d.Path, ".git") || strings.Contains(d.Path, "dep") && !strings.HasPrefix(d.Path, "deep") {
			t.Errorf("looked into %s", d.Path)
		}
	}
	if !skipped || o.Languages["markdown"] != 3 {
		t.Errorf("%+v %+v", o.Directories, o.Languages)
	}
	o, f = ask(g, g.s.overview, wire.OverviewIn{MaxDepth: 9, Limit: 1, Path: "deep"})
	if f != nil || o.Scan.MaxDepth != wire.MaxOverviewDepth || o.Scan.Limit != wire.MinOverviewLimit || len(o.Manifests) != 1 || o.Path != "deep" {
		t.Errorf("%+v %s", o, told(f))
	}
	for i := range 100 {
		g.file(fmt.Sprintf("many/f%d", i), "")
	}
	if o, _ = ask(g, g.s.overview, wire.OverviewIn{Path: "many", Limit: 20}); !o.Scan.Truncated || o.Scan.Entries != 20 || len(o.TopLevel) != 20 || o.Directories[0].Files != 100 {
		t.Errorf("%+v", o)
	}
}
