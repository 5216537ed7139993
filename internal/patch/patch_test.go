package patch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func parsed(t *testing.T, text string) []File {
	t.Helper()
	files, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return files
}

// What each form of a patch says about its file.
func TestForms(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want File
	}{
		"plain": {"--- a.txt\t2026-01-01\n+++ a.txt\n@@ -1 +1 @@\n-x\n+y\n", File{Kind: Edit, Path: "a.txt", At: 1}},
		"git": {"diff --git a/d/a b/d/a\nindex 1..2 100644\n--- a/d/a\n+++ b/d/a\n@@ -1 +1 @@ func x()\n-x\n+y\n",
			File{Kind: Edit, Path: "d/a", At: 1}},
		"after a mail's text": {"From: x\n\n---\n a | 2 +-\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n-- \n2.40\n",
			File{Kind: Edit, Path: "a", At: 6}},
		"new":             {"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+y\n", File{Kind: Create, Path: "n", At: 1}},
		"new, empty":      {"diff --git a/n b/n\nnew file mode 100644\nindex 0..e\n", File{Kind: Create, Path: "n", Mode: ModePlain, At: 1}},
		"new, executable": {"diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+y\n", File{Kind: Create, Path: "n", Mode: ModeExecutable, At: 1}},
		"deleted":         {"diff --git a/n b/n\ndeleted file mode 100755\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n", File{Kind: Delete, Path: "n", At: 1}},
		"deleted, plain":  {"--- n\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n", File{Kind: Delete, Path: "n", At: 1}},
		"renamed":         {"diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n", File{Kind: Rename, Path: "o", ToPath: "n", At: 1}},
		"renamed, edited": {"diff --git a/o b/n\nrename from o\nrename to n\nindex 1..2\n--- a/o\n+++ b/n\n@@ -1 +1 @@\n-x\n+y\n",
			File{Kind: Rename, Path: "o", ToPath: "n", At: 1}},
		"copied": {"diff --git a/o b/n\ncopy from o\ncopy to n\n", File{Kind: Copy, Path: "o", ToPath: "n", At: 1}},
		"mode":   {"diff --git a/o b/o\nold mode 100644\nnew mode 100755\n", File{Kind: Edit, Path: "o", Mode: ModeExecutable, At: 1}},
		"without prefixes": {"diff --git o o\n--- o\n+++ o\n@@ -1 +1 @@\n-x\n+y\n",
			File{Kind: Edit, Path: "o", At: 1}},
		"quoted": {"diff --git \"a/t\\tb\" \"b/t\\tb\"\n--- \"a/t\\tb\"\n+++ \"b/t\\tb\"\n@@ -1 +1 @@\n-x\n+y\n", File{Kind: Edit, Path: "t\tb", At: 1}},
		"octal":  {"diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nold mode 100755\nnew mode 100644\n", File{Kind: Edit, Path: "ä", Mode: ModePlain, At: 1}},
		"blank in the name": {"diff --git a/a b.txt b/a b.txt\n--- a/a b.txt\t\n+++ b/a b.txt\t\n@@ -1 +1 @@\n-x\n+y\n",
			File{Kind: Edit, Path: "a b.txt", At: 1}},
	} {
		files := parsed(t, tc.text)
		if len(files) != 1 {
			t.Errorf("%s: %d files", name, len(files))
			continue
		}
		got := files[0]
		got.Hunks = nil
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestRefused(t *testing.T) {
	head := "--- a/f\n+++ b/f\n"
	git := "diff --git a/f b/f\n"
	for _, tc := range []struct {
		text, reason string
		line         int
	}{
		{"", Empty, 1},
		{"nothing of the kind\n", Empty, 1},
		{"\xff", Malformed, 1},
		{"--- a\x00\n+++ a\n", Malformed, 1},
		{"@@ -1 +1 @@\n", Malformed, 1},
		{head + "@@ -1,2 +1 @@\n-x\n+y\n", HunkCounts, 5},
		{head + "@@ -1 +1 @@\n-x\n+y\n+z\n", HunkCounts, 6},
		{head + "@@ -1 +1 @@\n-x\n-y\n", HunkCounts, 5},
		{head + "@@ -1 +1 @@\n-x\n*y\n", HunkCounts, 5},
		{head + "@@ -1 +1 @@\n-x\n", HunkCounts, 4},
		{head + "@@ -1 +1\n-x\n+y\n", Malformed, 3},
		{head + "@@ -0,1 +1 @@\n-x\n+y\n", Malformed, 3},
		{head + "@@ -1,0 +1,0 @@\n", Malformed, 3},
		{head + "@@ -999999999 +1 @@\n-x\n+y\n", Malformed, 3},
		{head + "@@ -4,0 +5 @@\n+y\n", NoContext, 3},
		{head + "@@ -3 +3 @@\n-x\n+y\n@@ -1 +1 @@\n-x\n+y\n", HunkOrder, 6},
		{head + "@@ -3,2 +3,2 @@\n-x\n+y\n z\n@@ -4 +4 @@\n-z\n+y\n", HunkOrder, 7},
		{head + "@@ -1,2 +1,2 @@\n x\n\\ No newline at end of file\n-y\n+z\n", Malformed, 5},
		{head, NothingToDo, 1},
		{"--- a/f\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n", NameMismatch, 1},
		{"--- /dev/null\n+++ /dev/null\n", Malformed, 1},
		{"--- \n+++ b/f\n", Malformed, 1},
		{"--- /dev/null\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", Malformed, 3},
		{"--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n", Malformed, 3},
		{git, NothingToDo, 1},
		{git + "@@ -1 +1 @@\n-x\n+y\n", Malformed, 2},
		{git + "--- a/g\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", NameMismatch, 1},
		{git + "--- a/f\n", Malformed, 3},
		{git + "Binary files a/f and b/f differ\n", Binary, 2},
		{git + "index 1..2\nGIT binary patch\nliteral 3\n", Binary, 3},
		{git + "new file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", Mode, 2},
		{git + "new file mode 160000\n", Mode, 2},
		{git + "old mode 100644\nnew mode 120000\n", Mode, 3},
		{git + "new mode 100755\n", Malformed, 1},
		{git + "new file mode 100644\ndeleted file mode 100644\n", Malformed, 1},
		{git + "rename from f\nrename to f\n", Malformed, 1},
		{git + "rename from f\n", Malformed, 1},
		{git + "rename from a\ncopy to b\n", Malformed, 1},
		{"diff --git a/x b/y\n", Malformed, 1},
		{"diff --git \"a/x b/y\n", Malformed, 1},
		{"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1 -1 +1 @@@\n", Combined, 1},
		{head + "@@@ -1 -1 +1 @@@\n", Combined, 3},
	} {
		_, err := Parse(tc.text)
		var e *Error
		if !errors.As(err, &e) || e.Reason != tc.reason || e.Line != tc.line {
			t.Errorf("%q: %v (%+v), want %s at %d", tc.text, err, e, tc.reason, tc.line)
		}
	}
}

// At the bounds a patch is read, one past them it is refused.
func TestBounds(t *testing.T) {
	files := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "--- /dev/null\n+++ b/f%d\n@@ -0,0 +1 @@\n+x\n", i)
		}
		return b.String()
	}
	hunks := func(n int) string {
		var b strings.Builder
		b.WriteString("--- a/f\n+++ b/f\n")
		for i := range n {
			fmt.Fprintf(&b, "@@ -%d +%d @@\n-x\n+y\n", i+1, i+1)
		}
		return b.String()
	}
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{"files": {files(MaxFiles), true}, "a file more": {files(MaxFiles + 1), false}, "hunks": {hunks(MaxHunks), true}, "a hunk more": {hunks(MaxHunks + 1), false}} {
		_, err := Parse(tc.text)
		var e *Error
		if (err == nil) != tc.ok || err != nil && (!errors.As(err, &e) || e.Reason != TooMany) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestApply(t *testing.T) {
	lines := func(n int) string {
		var b strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	for name, tc := range map[string]struct {
		before, hunks, after string
		moved                []Move
	}{
		"in place":               {lines(5), "@@ -2,3 +2,3 @@\n line 2\n-line 3\n+LINE 3\n line 4\n", strings.Replace(lines(5), "line 3", "LINE 3", 1), nil},
		"two hunks":              {lines(9), "@@ -1,2 +1,3 @@\n line 1\n+new\n line 2\n@@ -8,2 +9,1 @@\n line 8\n-line 9\n", "line 1\nnew\n" + strings.TrimPrefix(lines(8), "line 1\n"), nil},
		"moved":                  {lines(5), "@@ -20,2 +20,2 @@\n line 2\n-line 3\n+LINE 3\n", strings.Replace(lines(5), "line 3", "LINE 3", 1), []Move{{0, -18}}},
		"the second with it":     {"x\n" + lines(9), "@@ -1,2 +1,2 @@\n-line 1\n+L1\n line 2\n@@ -8 +8 @@\n-line 8\n+L8\n", "x\n" + strings.NewReplacer("line 1", "L1", "line 8", "L8").Replace(lines(9)), []Move{{0, 1}, {1, 1}}},
		"stated place of two":    {"a\nb\na\nb\n", "@@ -3,2 +3,2 @@\n a\n-b\n+c\n", "a\nb\na\nc\n", nil},
		"no newline stays":       {"a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", "A\nb", nil},
		"newline added":          {"a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n", nil},
		"newline taken":          {"a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb", nil},
		"blank context":          {"a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n", "a\n\nB\n", nil},
		"into an empty file":     {"", "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n", nil},
		"crlf text, lf patch":    {"a\r\nb\r\nc\r\n", "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+D\n c\n", "a\r\nB\r\nD\r\nc\r\n", nil},
		"mixed text, lf patch":   {"a\nb\r\nc\n", "@@ -1,3 +1,5 @@\n a\n+x\n b\n+y\n c\n", "a\nx\nb\r\ny\r\nc\n", nil},
		"crlf both":              {"a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", "a\r\nB\r\n", nil},
		"crlf becomes lf":        {"a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n-b\r\n+a\n+b\n", "a\nb\n", nil},
		"added before the first": {"a\r\n", "@@ -1 +1,2 @@\n+n\n a\n", "n\r\na\r\n", nil},
	} {
		f := parsed(t, "--- a/f\n+++ b/f\n"+tc.hunks)[0]
		got, conflicts := f.Apply(tc.before)
		if len(conflicts) > 0 || got.Text != tc.after || !reflect.DeepEqual(got.Moved, tc.moved) {
			t.Errorf("%s: %q %v %+v, want %q", name, got.Text, got.Moved, conflicts, tc.after)
		}
	}
}

// A patch whose every line ends in CR LF, its headers too, was converted on its way.
func TestConvertedPatch(t *testing.T) {
	text := strings.ReplaceAll("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", "\n", "\r\n")
	for before, after := range map[string]string{"x\n": "y\n", "x\r\n": "y\r\n"} {
		got, conflicts := parsed(t, text)[0].Apply(before)
		if got.Text != after || len(conflicts) > 0 {
			t.Errorf("%q became %q %+v", before, got.Text, conflicts)
		}
	}
}

func TestConflicts(t *testing.T) {
	for name, tc := range map[string]struct {
		before, hunks string
		want          []Conflict
	}{
		"not there":       {"a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-x\n+y\n c\n", []Conflict{{Kind: MatchNotFound, Line: 1, PatchLine: 3, DiffersAt: 2}}},
		"behind the end":  {"a\n", "@@ -7 +7 @@\n-x\n+y\n", []Conflict{{Kind: MatchNotFound, Line: 7, PatchLine: 3}}},
		"two places":      {"a\nb\na\nb\n", "@@ -2,2 +2,2 @@\n a\n-b\n+c\n", []Conflict{{Kind: MultipleMatches, Line: 2, PatchLine: 3, Matches: 2}}},
		"both told":       {"a\n", "@@ -1 +1 @@\n-x\n+y\n@@ -3 +3 @@\n-z\n+y\n", []Conflict{{Kind: MatchNotFound, Line: 1, PatchLine: 3, DiffersAt: 1}, {Hunk: 1, Kind: MatchNotFound, Line: 3, PatchLine: 6}}},
		"not empty":       {"a\n", "@@ -0,0 +1 @@\n+y\n", []Conflict{{Kind: MatchNotFound, Line: 1, PatchLine: 3, DiffersAt: 1}}},
		"no line end":     {"a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", []Conflict{{Kind: MatchNotFound, Line: 1, PatchLine: 3, DiffersAt: 2}}},
		"end not the end": {"a\nb\n", "@@ -1 +1 @@\n-a\n+c\n\\ No newline at end of file\n", []Conflict{{Kind: MatchNotFound, Line: 1, PatchLine: 3}}},
		"space differs":   {"a\t\n", "@@ -1 +1 @@\n-a \n+c\n", []Conflict{{Kind: MatchNotFound, Line: 1, PatchLine: 3, DiffersAt: 1}}},
		"used before":     {"a\nx\n", "@@ -1 +1 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+c\n", []Conflict{{Hunk: 1, Kind: MatchNotFound, Line: 2, PatchLine: 6, DiffersAt: 2}}},
	} {
		got, conflicts := parsed(t, "--- a/f\n+++ b/f\n"+tc.hunks)[0].Apply(tc.before)
		if got.Text != "" || !reflect.DeepEqual(conflicts, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, conflicts, tc.want)
		}
	}
}

// What git writes about two random texts makes the one from the other.
func TestAgainstGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString([]string{"a", "b", "", " c", "\td", "-- x", "+y", "@@ -1 +1 @@"}[r.IntN(8)])
			b.WriteString([]string{"\n", "\n", "\n", "\r\n"}[r.IntN(4)])
		}
		s := b.String()
		if r.IntN(3) == 0 {
			s = strings.TrimSuffix(s, "\n")
		}
		return s
	}
	for i := range 150 {
		old, now := text(), text()
		for name, s := range map[string]string{"old": old, "now": now} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("git", "diff", "--no-index", "--no-color", fmt.Sprintf("-U%d", 1+i%4), "old", "now")
		cmd.Dir = dir
		out, _ := cmd.Output()
		if len(out) == 0 {
			continue
		}
		diff := strings.ReplaceAll(strings.ReplaceAll(string(out), "a/old b/now", "a/now b/now"), "--- a/old\n", "--- a/now\n")
		files := parsed(t, diff)
		got, conflicts := files[0].Apply(old)
		if len(conflicts) > 0 || got.Text != now || len(got.Moved) > 0 {
			t.Fatalf("%q to %q by\n%s\ngave %q %+v %v", old, now, diff, got.Text, conflicts, got.Moved)
		}
	}
}

// Whatever comes in, a refusal has a reason and a line, and what applies has the lines that it says.
func FuzzPatch(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nb\n")
	f.Add("diff --git a/o b/n\nrename from o\nrename to n\n--- a/o\n+++ b/n\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n", "x")
	f.Add("diff --git \"a/\\303\" b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", "")
	f.Fuzz(func(t *testing.T, text, before string) {
		files, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason == "" || e.Line < 1 || e.Message == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		for _, file := range files {
			if file.Path == "" || file.At < 1 || (file.ToPath == "") != (file.Kind != Rename && file.Kind != Copy) {
				t.Fatalf("%+v", file)
			}
			added, deleted := file.Counts()
			got, conflicts := file.Apply(before)
			if len(conflicts) > 0 {
				continue
			}
			if n := len(splitLines(got.Text)) - len(splitLines(before)); n != added-deleted {
				t.Fatalf("%d lines more for +%d -%d: %q to %q by %q", n, added, deleted, before, got.Text, text)
			}
		}
	})
}
