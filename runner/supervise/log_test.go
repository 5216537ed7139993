package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// whole is what a reader gets of a stream from an offset on.
func whole(t *testing.T, r Reader, from int64) (b []byte, first int64) {
	t.Helper()
	first = -1
	for {
		part, at, err := r.Read(from, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(part) == 0 {
			return b, first
		}
		if first < 0 {
			first = at
		} else if at != from {
			t.Fatalf("a gap: asked for %d, got %d", from, at)
		}
		b, from = append(b, part...), at+int64(len(part))
	}
}

// A log keeps the end of its stream, contiguous and at its exact place, within its bound.
func TestALogKeepsTheEnd(t *testing.T) {
	dir := t.TempDir()
	l := NewLog(dir, "stdout")
	r := Reader{dir, "stdout"}
	if b, first := whole(t, r, 0); len(b) != 0 || first != -1 {
		t.Fatalf("an empty log has %d bytes", len(b))
	}
	var all []byte
	for i := 0; len(all) < 3*LogBytes; i++ {
		part := bytes.Repeat([]byte{byte(i)}, 7777)
		all = append(all, part...)
		l.Write(part)
		if i == 3 {
			if b, first := whole(t, r, 0); first != 0 || !bytes.Equal(b, all) {
				t.Fatalf("of %d bytes it has %d from %d", len(all), len(b), first)
			}
		}
	}
	l.Write(nil)
	b, first := whole(t, r, 0)
	if int64(len(all)) != l.Total() || first+int64(len(b)) != l.Total() || len(b) < LogBytes || len(b) > LogBytes+segmentBytes || !bytes.Equal(b, all[first:]) {
		t.Errorf("of %d bytes it has %d from %d", len(all), len(b), first)
	}
	if from, to, err := r.Kept(); from != first || to != l.Total() || err != nil {
		t.Errorf("%d %d %v", from, to, err)
	}
	if part, first := whole(t, r, l.Total()-5); len(part) != 5 || first != l.Total()-5 {
		t.Errorf("the last 5 are %d from %d", len(part), first)
	}
	l.Close()
	files, _ := filepath.Glob(filepath.Join(dir, "stdout.*"))
	if len(files) > keptSegments {
		t.Errorf("%d files", len(files))
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info, err)
		}
	}
}

// What the disk does not take is counted, and what is kept afterwards begins behind it.
func TestALogCountsWhatTheDiskRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	l := NewLog(dir, "stdout")
	l.Write([]byte("lost"))
	if l.Total() != 4 {
		t.Fatal(l.Total())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Write([]byte("kept"))
	if b, first := whole(t, Reader{dir, "stdout"}, 0); string(b) != "kept" || first != 4 {
		t.Fatalf("%q from %d", b, first)
	}
	l.file.Close() // the next write fails
	l.Write([]byte("gone"))
	l.Write([]byte("more"))
	if b, first := whole(t, Reader{dir, "stdout"}, 0); string(b) != "more" || first != 12 || l.Total() != 16 {
		t.Fatalf("%q from %d of %d", b, first, l.Total())
	}
}
