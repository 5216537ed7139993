package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// dataFlag is --data, with the user's state directory as the default.
func dataFlag(fs *flag.FlagSet) *string {
	return fs.String("data", "", "data `DIR`; default: WEBCODEX_DATA, else the user's state directory")
}

// dataDir resolves the data directory to an absolute path without touching the disk.
func dataDir(flagValue string) (string, error) {
	dir := flagValue
	if dir == "" {
		dir = os.Getenv("WEBCODEX_DATA")
	}
	if dir == "" {
		def, err := defaultDataDir()
		if err != nil {
			return "", err
		}
		dir = def
	}
	return filepath.Abs(dir)
}

func defaultDataDir() (string, error) {
	if x := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(x) {
		return filepath.Join(x, "webcodex"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usagef("there is no home directory: name a data directory with --data")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "webcodex"), nil
	}
	return filepath.Join(home, ".local", "state", "webcodex"), nil
}

// makeDataDir creates the directory 0700, or checks that it is ours alone. Where it and the
// Project root, if there is one, would lie in one another nothing is made.
func makeDataDir(dir, root string) error {
	if root != "" {
		if err := keepApart(root, dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failf(exitFailed, "the data directory cannot be created: %w", short(err))
	}
	return ownDataDir(dir)
}

// ownDataDir refuses a directory that another account owns or can enter: who can write
// there could replace the socket, and who can read there has the token.
func ownDataDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failf(exitNoServer, "there is no data directory: start a server with `webcodex up`")
	case err != nil:
		return failf(exitAccess, "the data directory cannot be read: %v", short(err))
	case !info.IsDir():
		return usagef("the data directory is no directory")
	}
	if !ours(info) {
		return failf(exitAccess, "the data directory belongs to another account: run webcodex as that account or name another with --data")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return failf(exitAccess, "others may enter the data directory: `chmod 700` it, or name another with --data")
	}
	return nil
}

// ours tells that a directory belongs to this account, which may be root.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// short drops the path from a file error: it was the caller's, and a message is one line.
func short(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// projectRoot is the directory to serve: the named one, else the root of the repository
// around the working directory. Git is not asked: this only looks for a .git entry.
func projectRoot(args []string) (string, error) {
	if len(args) > 0 {
		return resolveDir(args[0])
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", failf(exitFailed, "the working directory cannot be read: %v", short(err))
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return resolveDir(dir)
		}
		if dir == filepath.Dir(dir) {
			return "", usagef("there is no git repository around the working directory: name a directory")
		}
	}
}

func resolveDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", usagef("%s cannot be opened: %v", dir, short(err))
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", usagef("%s is no directory", dir)
	}
	return real, nil
}

// keepApart refuses a Project root that contains the data directory or lies in it, by device
// and inode: file tools would reach the log and the token (faults.md 4, Files).
func keepApart(root, data string) error {
	for _, p := range [][2]string{{root, data}, {data, root}} {
		inside, err := within(p[0], p[1])
		if err != nil {
			return err
		}
		if inside {
			return usagef("the Project root and the data directory lie in one another: name another data directory with --data")
		}
	}
	return nil
}

// within reports whether path is dir or lies below it. Parts of path that do not exist yet
// are skipped; links are followed.
func within(dir, path string) (bool, error) {
	want, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the directory: %w", short(err))
	}
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
			break
		}
		if path == filepath.Dir(path) {
			return false, nil
		}
		path = filepath.Dir(path)
	}
	for ; ; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, want) {
			return true, nil
		}
		if path == filepath.Dir(path) {
			return false, nil
		}
	}
}
