package git

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func pieces(text string) (out []string) {
	p := NewPatchReader(strings.NewReader(text))
	for {
		x, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			return append(out, "error "+err.Error())
		}
		switch {
		case x.File != nil:
			out = append(out, fmt.Sprintf("file %q %q %s binary=%v bare=%v", x.File.Path, x.File.Orig, x.File.Change, x.File.Binary, x.File.Bare))
		case x.Hunk != nil:
			out = append(out, fmt.Sprintf("hunk %d,%d %d,%d %q", x.Hunk.OldStart, x.Hunk.OldLines, x.Hunk.NewStart, x.Hunk.NewLines, x.Hunk.Section))
		default:
			out = append(out, fmt.Sprintf("line %q", x.Line))
		}
	}
}

func TestPatchReader(t *testing.T) {
	for name, c := range map[string]struct{ patch, want string }{
		"modified": {"diff --git a/a b b/a b\nindex 1..2 100644\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1,2 @@ func x() {\n-old\n+new\n+@@ -9 +9 @@\n\\ No newline at end of file\n",
			"file \"a b\" \"\" modified binary=false bare=false\nhunk 1,1 1,2 \"func x() {\"\nline \"-old\"\nline \"+new\"\nline \"+@@ -9 +9 @@\"\nline \"\\\\ No newline at end of file\""},
		"content that looks like headers": {"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n--- a/evil\n+++ b/evil\n diff --git a/evil b/evil\n",
			"file \"x\" \"\" modified binary=false bare=false\nhunk 1,3 1,3 \"\"\nline \"--- a/evil\"\nline \"+++ b/evil\"\nline \" diff --git a/evil b/evil\""},
		"quoted": {"diff --git \"a/new\\nline\\t\\303\\251\" \"b/new\\nline\\t\\303\\251\"\nold mode 100644\nnew mode 100755\n",
			"file \"new\\nline\\té\" \"\" modified binary=false bare=true"},
		"added, deleted, renamed": {"diff --git a/n b/n\nnew file mode 100644\nindex 0..e\ndiff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" +
			"diff --git a/from here b/to there\nsimilarity index 100%\nrename from from here\nrename to to there\n",
			"file \"n\" \"\" added binary=false bare=true\nfile \"d\" \"\" deleted binary=false bare=false\nhunk 1,1 0,0 \"\"\nline \"-x\"\nfile \"to there\" \"from here\" renamed binary=false bare=true"},
		"binary": {"diff --git a/b b/b\nindex 1..2 100644\nBinary files a/b and b/b differ\n",
			"file \"b\" \"\" modified binary=true bare=true"},
		"conflict": {"diff --cc both\nindex 1,2..0\n--- a/both\n+++ b/both\n@@@ -1,1 -1,1 +1,5 @@@ sec\n++<<<<<<< HEAD\n +main\n* Unmerged path other\n",
			"file \"both\" \"\" unmerged binary=false bare=false\nhunk 1,1 1,5 \"sec\"\nline \"++<<<<<<< HEAD\"\nline \" +main\"\nfile \"other\" \"\" unmerged binary=false bare=true"},
		"nothing": {"", ""},
		"noise":   {"@@ -1 +1 @@\nwarning: x\n", "hunk 1,1 1,1 \"\""},
	} {
		if got := strings.Join(pieces(c.patch), "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestPatchReaderBoundsLines(t *testing.T) {
	p := NewPatchReader(strings.NewReader("diff --git a/x b/x\n@@ -1 +1 @@\n+" + strings.Repeat("y", 3*maxPatchLine) + "\n+z\n"))
	var cut, lines int
	for {
		x, err := p.Next()
		if err != nil {
			break
		}
		if x.Line != nil {
			if lines++; x.Cut {
				cut++
			}
			if len(x.Line) > maxPatchLine {
				t.Errorf("a line of %d bytes", len(x.Line))
			}
		}
	}
	if lines != 2 || cut != 1 {
		t.Errorf("%d lines, %d cut", lines, cut)
	}
}

// Sums are equal exactly where the text before is.
func TestPatchReaderSum(t *testing.T) {
	at := func(text string) string {
		p := NewPatchReader(strings.NewReader(text))
		p.Next()
		p.Next()
		return p.Sum()
	}
	head := "diff --git a/x b/x\n@@ -1 +1 @@\n"
	if at(head+"+a\n") != at(head+"+b\n+c\n") {
		t.Error("what comes after has a say")
	}
	if at(head) == at("diff --git a/y b/y\n@@ -1 +1 @@\n") {
		t.Error("what comes before has none")
	}
}

func FuzzPatchReader(f *testing.F) {
	f.Add("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n")
	f.Add("diff --git \"a/\\\\\" \"b/\\777\"\nrename from \"\\\n@@")
	f.Add("* Unmerged path \"x\ndiff --cc \n@@@ -1 -1 +1 @@@\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := NewPatchReader(strings.NewReader(text))
		for n := 0; ; n++ {
			x, err := p.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			set := 0
			for _, is := range []bool{x.File != nil, x.Hunk != nil, x.Line != nil} {
				if is {
					set++
				}
			}
			if err != nil || n > len(text)+1 || set > 1 {
				t.Fatalf("piece %d: %+v %v", n, x, err)
			}
		}
	})
}

func FuzzStatusEntry(f *testing.F) {
	f.Add([]byte("1 .M N... 100644 100644 100644 1 1 a b"))
	f.Add([]byte("2 R. N... 100644 100644 100644 1 1 R100 new"))
	f.Add([]byte("u UU N... 1 2 3 4 5 6 7 path"))
	f.Add([]byte("? \xff"))
	f.Fuzz(func(t *testing.T, rec []byte) {
		if e, _, ok := statusEntry(rec); ok && e.Path == "" {
			t.Fatalf("%q has no path", rec)
		}
		numstat(rec)
	})
}
