// Package leak is for tests alone: it looks for what a test, or all tests of a package, leave
// behind: processes, open files, control groups, temporary directories.
package leak

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"webcodex/internal/proc"
)

// patience is how long what ends beside a test may take to be gone.
var patience = 10 * time.Second

// inside tells a test binary that another one runs it.
const inside = "LEAK_TEST_INSIDE"

// Check fails the test if something is left once all its cleanups have run: call it first. The
// test gets a directory of its own for temporary files, so it cannot be parallel.
func Check(t testing.TB) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	before := look()
	t.Cleanup(func() {
		for _, what := range before.left(tmp) {
			t.Errorf("it leaves %s", what)
		}
	})
}

// Main runs the tests of a package and gives the exit status, which is 1 also where they leave
// something: os.Exit(leak.Main(m)). A test binary that a test runs again is a part of that test.
//
// killed are the beginnings of names of temporary files that processes leave which the tests kill on
// purpose, for their next life to find; they go without a word.
func Main(m interface{ Run() int }, killed ...string) int {
	if os.Getenv(inside) != "" {
		return m.Run()
	}
	tmp, err := os.MkdirTemp("", "l") // sockets in directories of tests need room for their names
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(tmp)
	if err := errors.Join(os.Setenv("TMPDIR", tmp), os.Setenv(inside, "1")); err != nil {
		fmt.Println(err)
		return 1
	}
	before := look()
	code := m.Run()
	for _, name := range below(tmp) {
		if slices.ContainsFunc(killed, func(k string) bool { return strings.HasPrefix(name, k) }) {
			_ = os.RemoveAll(filepath.Join(tmp, name))
		}
	}
	left := before.left(tmp)
	for _, what := range left {
		fmt.Printf("FAIL: the tests leave %s\n", what)
	}
	if len(left) > 0 {
		code = 1
	}
	return code
}

// state is what there is at a time, by kind; each thing has a name that tells it from others.
type state struct {
	processes, files, groups []string
}

func look() state {
	return state{processes: descendants(), files: openFiles(), groups: proc.ControlGroups()}
}

// left is what is there and was not, as soon as it is nothing and at last when patience is over.
func (s state) left(tmp string) []string { return s.waited(look, tmp) }

func (s state) waited(look func() state, tmp string) (out []string) {
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now := look()
		out = out[:0]
		for _, kind := range []struct {
			name     string
			was, now []string
		}{
			{"process", s.processes, now.processes}, {"open file", s.files, now.files},
			{"control group", s.groups, now.groups}, {"temporary file", nil, below(tmp)},
		} {
			for _, one := range kind.now {
				if i := slices.Index(kind.was, one); i >= 0 {
					kind.was = slices.Delete(slices.Clone(kind.was), i, i+1)
					continue
				}
				out = append(out, kind.name+" "+one)
			}
		}
		if len(out) == 0 || time.Now().After(until) {
			return out
		}
	}
}

func below(dir string) (out []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		// Directories of tests are removed by them, the toolchain's are its own.
		if name := e.Name(); !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "go-build") {
			out = append(out, filepath.Base(name))
		}
	}
	return out
}
