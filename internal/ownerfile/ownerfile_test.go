package ownerfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"webcodex/internal/ownerfile"
)

// A file that is not there says nothing; one that may not be trusted, or that would wait for
// somebody, is refused at once.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, mode := range map[string]os.FileMode{"mine": 0o644, "ours": 0o664, "all": 0o602} {
		if err := os.WriteFile(at(name), []byte("12345678"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path      string
		max       int
		text, err string
	}{
		{"", 8, "", ""}, {at("none"), 8, "", ""}, {at("mine"), 8, "12345678", ""}, {at("mine"), 7, "", "more than 7 bytes"},
		{at("ours"), 8, "", "others may write it"}, {at("all"), 8, "", "others may write it"}, {at("fifo"), 8, "", "no regular file"}, {dir, 8, "", "no regular file"},
	} {
		text, err := ownerfile.Read(c.path, c.max)
		if text != c.text || (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), dir)) {
			t.Errorf("%+v: %q, %v", c, text, err)
		}
	}
}

// No error of a text repeats what stands in it but for keys.
func TestErrorsNameNoValue(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a = HUNTER2", "a = \"HUNTER2", "a = { b = \"HUNTER2\" }", "n = \"HUNTER2\"", "HUNTER2", "a = \"HUNTER2\" x", "b = \"HUNTER2\"", "a = 'x'\na = 'HUNTER2'", "[HUNTER2"} {
		var into struct {
			A string
			N int
		}
		if err := ownerfile.Decode(text, &into); err == nil || strings.Contains(err.Error(), "HUNTER2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A change of size, time or file is seen; looking is none.
func TestStamp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	none := ownerfile.StampOf(path)
	write := func(path string) {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path)
	first := ownerfile.StampOf(path)
	if !none.Same(ownerfile.Stamp{}) || none.Same(first) || !first.Same(ownerfile.StampOf(path)) {
		t.Errorf("%+v %+v", none, first)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(path + ".new")
	if err := os.Chtimes(path+".new", info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if first.Same(ownerfile.StampOf(path)) {
		t.Error("another file of the same size and time passes for the first")
	}
}
