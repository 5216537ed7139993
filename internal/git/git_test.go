package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"webcodex/internal/fault"
)

func TestVersion(t *testing.T) {
	for text, want := range map[string][2]int{"git version 2.39.5\n": {2, 39}, "git version 2.50.1 (Apple Git-155)": {2, 50}, "git version 3.0": {3, 0}} {
		if got, err := versionOf([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "git version", "git version x.y"} {
		if _, err := versionOf([]byte(text)); err == nil {
			t.Errorf("%q has a version", text)
		}
	}
}

func TestShow(t *testing.T) {
	for name, want := range map[string]string{"a": "a", "100%": "100%", "é😀": "é😀", "": "", "a\xff%": "a%FF%25", "\xed\xa0\x80": "%ED%A0%80"} {
		got, lossy := Show(name)
		if got != want || lossy != !utf8.ValidString(name) {
			t.Errorf("%q: %q %v", name, got, lossy)
		}
	}
}

func TestInternal(t *testing.T) {
	for _, p := range []string{".git", "a/.git/config", ".GIT", ".Git/hooks", "a/.git", ".git.", ".git ", ".git . .", ".g\u200cit", ".gi\u00adt",
		"\u200b.git", ".git\ufe0f", "git~1", "GIT~1/config", `a\.git\x`, ".git::$INDEX_ALLOCATION", ".git:x", ".git/", "//.git"} {
		if !Internal(p) {
			t.Errorf("%q is git's", p)
		}
	}
	for _, p := range []string{"", "a", ".gitignore", ".github/x", "git", "x.git", ".git2", "a.git/config", ".gitmodules", "git~2"} {
		if Internal(p) {
			t.Errorf("%q is not git's", p)
		}
	}
}

// sh runs a shell in place of git.
func sh(script string, timeout time.Duration) child {
	return child{program: "/bin/sh", dir: "/", env: childEnv(nil), args: []string{"-c", script}, timeout: timeout}
}

func TestChildEnds(t *testing.T) {
	var got strings.Builder
	all := func(in io.Reader) error { _, err := io.Copy(&got, in); return err }
	if err := sh("printf hello; echo oops >&2", time.Minute).run(t.Context(), all); err != nil || got.String() != "hello" {
		t.Errorf("%q %v", got.String(), err)
	}
	err := sh("echo why >&2; exit 3", time.Minute).run(t.Context(), all)
	if e := (*exitError)(nil); !errors.As(err, &e) || e.code != 3 || e.stderr != "why\n" {
		t.Errorf("%v", err)
	}
	if err := sh("sleep 60", 100*time.Millisecond).run(t.Context(), all); fault.KindOf(err) != fault.Timeout {
		t.Errorf("%v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, stop)
	if err := sh("sleep 60", time.Minute).run(ctx, all); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("%v", err)
	}
	// One that keeps the pipe open after its parent's end is ended with it.
	began := time.Now()
	if err := sh("sleep 60 & printf x", time.Minute).run(t.Context(), all); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestChildOutputIsBounded(t *testing.T) {
	var n int64
	err := sh("yes", time.Minute).run(t.Context(), func(in io.Reader) error {
		var err error
		n, err = io.Copy(io.Discard, in)
		return err
	})
	if !errors.Is(err, errCut) || n != maxOutput {
		t.Errorf("%d bytes, %v", n, err)
	}
	enough := errors.New("enough")
	if err := sh("yes", time.Minute).run(t.Context(), func(io.Reader) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	// A reader that just stops is not taken for one that read all.
	if err := sh("yes", time.Minute).run(t.Context(), func(io.Reader) error { return nil }); !errors.Is(err, errCut) {
		t.Errorf("%v", err)
	}
}

func TestChildEnvironment(t *testing.T) {
	t.Setenv("GIT_DIR", "/elsewhere")
	t.Setenv("GIT_SSH_COMMAND", "evil")
	t.Setenv("SECRET_TOKEN", "hunter2")
	var got strings.Builder
	if err := sh("env", time.Minute).run(t.Context(), func(in io.Reader) error { _, err := io.Copy(&got, in); return err }); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"/elsewhere", "evil", "hunter2"} {
		if strings.Contains(got.String(), bad) {
			t.Errorf("%s is passed on:\n%s", bad, got.String())
		}
	}
	for _, want := range []string{"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C"} {
		if !strings.Contains(got.String(), want+"\n") {
			t.Errorf("%s is not set", want)
		}
	}
}

func TestRecords(t *testing.T) {
	collect := func(read func(func([]byte) error) func(io.Reader) error, text string) (out []string, err error) {
		err = read(func(b []byte) error { out = append(out, string(b)); return nil })(strings.NewReader(text))
		return out, err
	}
	if got, err := collect(records, "a\x00\x00b c\n\x00"); err != nil || fmt.Sprintf("%q", got) != `["a" "" "b c\n"]` {
		t.Errorf("%q %v", got, err)
	}
	if _, err := collect(records, "a\x00cut"); fault.KindOf(err) != fault.GitFailed {
		t.Errorf("a cut record: %v", err)
	}
	long := strings.Repeat("x", maxRecord+1)
	if _, err := collect(records, long+"\x00"); fault.KindOf(err) != fault.GitFailed {
		t.Errorf("a long record: %v", err)
	}
	if got, err := collect(records, long[1:]+"\x00"); err != nil || len(got[0]) != maxRecord {
		t.Errorf("a record at the bound: %v", err)
	}
	if got, err := collect(cutRecords, long+"yz\x00b\x00"); err != nil || len(got) != 2 || len(got[0]) != maxRecord || got[1] != "b" {
		t.Errorf("cut: %d %v", len(got), err)
	}
}

// A long-running request on a repository is ended with its caller, and nothing is left open.
func TestOpenLeavesNoDescriptor(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	before := openFiles(t)
	for range 20 {
		r, err := Open(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Status(t.Context(), func(StatusEntry) error { return nil }); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	if after := openFiles(t); after > before+2 {
		t.Errorf("%d open files before, %d after", before, after)
	}
}

func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip("open files cannot be counted here")
	}
	return len(list)
}

// A git directory that was swapped for another after it was looked at is not used.
func TestRootIsTheOpenedDirectory(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	top := t.TempDir()
	for _, name := range []string{"mine", "theirs"} {
		dir := filepath.Join(top, name)
		for _, args := range [][]string{{"init", "-q", "-b", name, dir}, {"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", name}} {
			if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
		}
	}
	root, err := os.OpenRoot(filepath.Join(top, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	// The name now leads to another repository; the opened directory is still the first.
	if err := os.Rename(filepath.Join(top, "mine"), filepath.Join(top, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(top, "theirs"), filepath.Join(top, "mine")); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), root)
	if err != nil {
		if fault.KindOf(err) != fault.GitUnavailable {
			t.Fatal(err)
		}
		return // refusing is fine too
	}
	defer r.Close()
	h, err := r.Status(t.Context(), func(StatusEntry) error { return nil })
	if err != nil || h.Branch != "mine" {
		t.Errorf("%+v %v", h, err)
	}
}
