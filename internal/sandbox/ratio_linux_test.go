package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"webcodex/internal/bench"
	"webcodex/internal/sandbox"
)

// A status of git in the sandbox takes what it takes without: beside a data directory in a place
// where nothing changes, and in one where something always does.
func TestRatioSandboxedGit(t *testing.T) {
	bench.Skip(t)
	repo := t.TempDir()
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(repo, fmt.Sprint(i)), []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(start func(*exec.Cmd) error, args ...string) time.Duration {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		began := time.Now()
		if err := start(cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "1"}} {
		git((*exec.Cmd).Start, args...)
	}
	top := t.TempDir()
	data := filepath.Join(top, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	sandbox.Protect(data)
	anew := func() { _ = os.WriteFile(filepath.Join(top, "f"), nil, 0o644); _ = os.Remove(filepath.Join(top, "f")) }
	for _, c := range []struct {
		name   string
		before func()
		bar    float64
	}{{"at rest", func() {}, 1.3}, {"in a busy place", anew, 1.3}} {
		bench.Run(t, bench.Comparison{Name: "git status in the sandbox, data directory " + c.name, Pairs: 100, Bar: c.bar, AtMost: true,
			Ours: func() time.Duration {
				c.before()
				return git(sandbox.Start, "--no-optional-locks", "status", "--porcelain=v2")
			},
			Yardstick: func() time.Duration {
				return git((*exec.Cmd).Start, "--no-optional-locks", "status", "--porcelain=v2")
			}})
	}
}
