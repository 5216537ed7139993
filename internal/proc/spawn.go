package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Reasons of a SpawnError.
const (
	NotFound      = "executable_not_found"
	NotExecutable = "not_executable"
	IsDirectory   = "is_directory"
	// NoFormat is a file the kernel cannot run, such as a script without an interpreter line.
	NoFormat = "no_interpreter"
	// LaunchEnvelope is the system's own limit on arguments and environment (EXE-21).
	LaunchEnvelope = "launch_envelope"
	NoResources    = "no_resources"
	BadArgument    = "bad_argument"
)

// SpawnError tells why nothing was started.
type SpawnError struct {
	Reason string
	Err    error
}

func (e *SpawnError) Error() string { return fmt.Sprintf("spawn: %s: %v", e.Reason, e.Err) }

// Unwrap gives the system's error, for the log.
func (e *SpawnError) Unwrap() error { return e.Err }

func spawnError(err error) *SpawnError {
	reason := NoResources
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = NotFound
	case errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.ENAMETOOLONG):
		reason = LaunchEnvelope
	case errors.Is(err, syscall.ENOEXEC):
		reason = NoFormat
	case errors.Is(err, syscall.EISDIR):
		reason = IsDirectory
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP),
		errors.Is(err, syscall.ETXTBSY):
		reason = NotExecutable
	case errors.Is(err, syscall.EINVAL):
		reason = BadArgument
	}
	return &SpawnError{reason, err}
}

// find resolves an executable: one with a slash is relative to the child's directory, a bare
// name is looked for in the absolute entries of PATH; a relative entry would let a
// repository supply the program.
func find(name, dir, path string) (string, error) {
	if strings.ContainsRune(name, '/') {
		at := name
		if !filepath.IsAbs(name) {
			at = dir + "/" + name // not joined: what .. means is the opened directory's matter
		}
		return name, runnable(at)
	}
	err := error(&SpawnError{NotFound, fs.ErrNotExist})
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			continue
		}
		at := filepath.Join(d, name)
		found := runnable(at)
		if found == nil {
			return at, nil
		}
		var se *SpawnError
		if errors.As(found, &se) && se.Reason != NotFound && se.Reason != IsDirectory {
			err = found
		}
	}
	return "", err
}

func runnable(at string) error {
	info, err := os.Stat(at)
	if err != nil {
		return spawnError(err)
	}
	switch {
	case info.IsDir():
		return &SpawnError{IsDirectory, syscall.EISDIR}
	case !info.Mode().IsRegular(), info.Mode()&0o111 == 0:
		return &SpawnError{NotExecutable, syscall.EACCES}
	}
	return nil
}

// Runnable reports whether a bare name is found in the PATH of an environment.
func Runnable(name string, env []string) bool {
	_, err := find(name, "/", pathOf(env))
	return err == nil
}
