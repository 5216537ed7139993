// Package sandbox starts helpers that only read: the git of a status, the ripgrep of a search, a
// language server. Where the kernel has what it takes they cannot write a file, see what is
// protected, or open a socket; Enforced tells where it has not. The rules hold for the helper and
// for all that descends from it, and for nothing else of this program.
package sandbox

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Enforcement is what keeps a helper from more than reading.
type Enforcement struct {
	// Landlock is the version of the kernel's interface that keeps helpers from writing, and from
	// what is protected; 0: there is none, and nothing does.
	Landlock int
	// Seccomp tells that helpers can open no socket, and change no mode, owner, time or attribute
	// of a file.
	Seccomp bool
}

// Files reports that helpers can write nothing, and see nothing of what is protected.
func (e Enforcement) Files() bool { return e.Landlock > 0 }

// Network reports that helpers open no connection: no socket at all, or at least none of TCP.
func (e Enforcement) Network() bool { return e.Seccomp || e.Landlock >= landlockNet }

// Capabilities name what is enforced, as a Runner tells it (wire.Features).
func (e Enforcement) Capabilities() (out []string) {
	if e.Files() {
		out = append(out, "sandbox_files")
	}
	if e.Network() {
		out = append(out, "sandbox_network")
	}
	return out
}

// landlockNet is the version that knows TCP.
const landlockNet = 4

// Options of one helper.
type Options struct {
	// Write are directories in which it may write all the same: absolute, and there.
	Write []string
	// Reads are absolute paths that it must be able to read although they may have come a moment
	// ago; its working directory and the user's settings are among them without being named.
	Reads []string
}

var protected struct {
	sync.Mutex
	dirs []string
}

// Protect adds directories that no helper may see: data and settings of WebCodex itself. They
// stay for the life of the process; one that is no longer there counts for nothing.
func Protect(dirs ...string) {
	protected.Lock()
	defer protected.Unlock()
	for _, d := range dirs {
		if real, err := filepath.EvalSymlinks(d); err == nil {
			d = real
		}
		if d, err := filepath.Abs(d); err == nil && !slices.Contains(protected.dirs, d) {
			protected.dirs = append(protected.dirs, d)
		}
	}
}

// Start is cmd.Start for a helper that only reads. An error of the sandbox itself starts nothing.
func Start(cmd *exec.Cmd) error { return StartWith(cmd, Options{}) }

// below reports that a path is a directory or lies in it.
func below(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
