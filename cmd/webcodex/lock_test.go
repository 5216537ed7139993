package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// given a running server, when somebody removes its lock file and its control socket, then no
// other process writes to its log: the refusal says that a process has the directory. What the server acknowledged stays.
func TestLockFileRemovedUnderAServer(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	w, id := begin(t, c)
	for _, name := range []string{"lock", socketName} {
		if err := os.Remove(filepath.Join(data, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range [][]string{{"token", "create", "--kind", "user", "--name", "n", "--projects", "all"}, {"token", "list"}, {"replay", string(id)},
		{"verify"}, {"history", "--confirm-clock"}, {"sessions"}, {"erase", "--yes", string(id)}} {
		at := 1
		if a[0] == "token" {
			at = 2
		}
		out, err := exec.Command(program(t), slices.Insert(slices.Clone(a), at, "--data", data)...).CombinedOutput()
		var x *exec.ExitError
		if !errors.As(err, &x) || x.ExitCode() != exitNoServer || !strings.Contains(string(out), "another process holds the data directory") {
			t.Errorf("%v: %v: %s", a, err, out)
		}
	}
	if res, err := w.call(t.Context(), "work_on_project", encode(map[string]any{"session_id": id, "instruction": "go on"})); err != nil || !res.Success {
		t.Fatalf("%v: %s", err, res.Output)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if r, err := verify(t.Context(), data); err != nil || !r.OK() {
		t.Errorf("%+v %v", r, err)
	}
}
