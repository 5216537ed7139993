package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"webcodex/internal/fault"
)

// FindRoot is the nearest directory at or above dir that holds a .git entry, symlinks
// resolved; empty where there is none. It runs no git and reads no file: whether the
// repository may be used is for Open to say.
func FindRoot(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", err
	}
	for {
		if _, err := os.Lstat(filepath.Join(abs, ".git")); err == nil {
			return abs, nil
		}
		up := filepath.Dir(abs)
		if up == abs {
			return "", nil
		}
		abs = up
	}
}

// Version is the installed git's own version text, for people (doctor). The error is
// git_unavailable with reason_code git_missing or git_too_old.
func Version(ctx context.Context) (string, error) {
	p, err := binary()
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithTimeout(ctx, Timeout)
	defer stop()
	cmd := exec.CommandContext(ctx, p, "--version")
	cmd.Env = childEnv(nil)
	out, err := cmd.Output()
	if err != nil {
		return "", fault.Wrap(err, fault.GitUnavailable, "git does not run on the Runner's machine").WithReason("git_missing")
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), nil
}

func versionOf(out []byte) (v [2]int, err error) {
	fields := bytes.Fields(out)
	if len(fields) < 3 {
		return v, errors.New("no version in git's answer")
	}
	for i, part := range bytes.SplitN(fields[2], []byte("."), 3) {
		if i < len(v) {
			if v[i], err = strconv.Atoi(string(part)); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}
