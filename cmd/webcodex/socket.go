package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"webcodex/mcp"
)

// socketName is the control socket in the data directory (shapes.md 5). Our own commands use
// it; hosts use TCP.
const socketName = "control.sock"

// maxSocketPath is what fits into a socket address on the smaller system (macOS, 104 with
// the final zero).
const maxSocketPath = 103

// socketAddr gives a name for the socket that fits into a socket address. On Linux a deep
// data directory is reached through its descriptor; the caller closes it after use.
func socketAddr(dir string) (addr string, release func(), err error) {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, usagef("the data directory's path is too long for a socket: name a shorter one with --data")
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName), func() { d.Close() }, nil
}

// listenControl opens the control socket. Only who holds the lock of the data directory may
// call it: it removes the socket that a killed server left.
func listenControl(dir string, logger *slog.Logger) (net.Listener, error) {
	addr, release, err := socketAddr(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := os.Remove(addr); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failf(exitFailed, "the old control socket cannot be removed: %v", short(err))
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return nil, failf(exitFailed, "the control socket cannot be opened: %w", cause(err))
	}
	l.SetUnlinkOnClose(false) // the name may be the next server's by then; see removeSocket
	if err := os.Chmod(addr, 0o600); err != nil {
		l.Close()
		return nil, failf(exitFailed, "the control socket cannot be made private: %v", short(err))
	}
	return mcp.NewPeerListener(l, logger), nil
}

// removeSocket takes the name away; called while the lock is still held.
func removeSocket(dir string) { os.Remove(filepath.Join(dir, socketName)) }

// errNoServer tells that nobody listens on the control socket.
var errNoServer = errors.New("no server runs on this data directory")

// dialControl connects to the running server of a data directory, or says errNoServer.
func dialControl(ctx context.Context, dir string) (net.Conn, error) {
	addr, release, err := socketAddr(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoServer
	}
	if err != nil {
		return nil, err
	}
	defer release()
	c, err := new(net.Dialer).DialContext(ctx, "unix", addr)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, errNoServer
	case errors.Is(err, fs.ErrPermission):
		return nil, failf(exitAccess, "the server of this data directory belongs to another account")
	default:
		return nil, failf(exitNoServer, "the server does not answer: %v", cause(err))
	}
	return c, nil
}

// findServer reports whether a server answers on the data directory, which must be ours.
func findServer(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return errNoServer
	}
	if err := ownDataDir(dir); err != nil {
		return err
	}
	c, err := dialControl(ctx, dir)
	if err != nil {
		return err
	}
	return c.Close()
}
