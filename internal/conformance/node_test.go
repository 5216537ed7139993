package conformance_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// nodeDir is where the packages of node/package-lock.json lie, and node the program.
type nodeDir struct {
	dir  string
	node string
}

var installed = sync.OnceValues(install)

// node gives the installed packages, or skips: these tests reach for the network once and
// for a minute of time, which is what make conformance is for.
func node(t *testing.T) nodeDir {
	t.Helper()
	if os.Getenv("WEBCODEX_CONFORMANCE") == "" {
		t.Skip("set WEBCODEX_CONFORMANCE=1, or run make conformance")
	}
	n, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// install brings the packages into the user's cache directory, once for each lock file. The
// rename at the end makes an interrupted install start over.
func install() (nodeDir, error) {
	lock, err := os.ReadFile(filepath.Join("node", "package-lock.json"))
	if err != nil {
		return nodeDir{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nodeDir{}, err
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "webcodex", "conformance-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := npm(dir); err != nil {
			return nodeDir{}, err
		}
	} else if err != nil {
		return nodeDir{}, err
	}
	program, err := nodeProgram(dir)
	return nodeDir{dir, program}, err
}

func npm(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "install-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		body, err := os.ReadFile(filepath.Join("node", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(fresh, name), body, 0o600)
		}
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// No package's script runs: none of these needs its own, and nobody has read them.
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.New("npm ci: " + err.Error() + "\n" + string(out))
	}
	return os.Rename(fresh, dir)
}

// nodeProgram is the Node that came as a package; where there is none for the platform, the
// one on the PATH, which must be as new as the Inspector asks for.
func nodeProgram(dir string) (string, error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	bundled := filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(bundled); err == nil {
		return bundled, nil
	}
	found, err := exec.LookPath("node")
	if err != nil {
		return "", errors.New("there is no Node package for this platform: install Node 22.19 or newer")
	}
	return found, nil
}

// run runs a program of the packages' directory and gives what it printed. The scripts of
// node/ are laid beside the packages, since imports are resolved from where a script lies.
func (n nodeDir) run(t *testing.T, limit time.Duration, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.node, args...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "FORCE_COLOR=0")
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// script copies the scripts of node/ beside the packages and gives the path of one.
func (n nodeDir) script(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp(n.dir, "scripts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	scripts, err := filepath.Glob(filepath.Join("node", "*.mjs"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, s := range scripts {
		body, err := os.ReadFile(s)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(s)), body, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

// tail is the end of a long output, where the reason stands.
func tail(s string) string {
	const keep = 6000
	if len(s) > keep {
		s = "…" + s[len(s)-keep:]
	}
	return strings.TrimSpace(s)
}
