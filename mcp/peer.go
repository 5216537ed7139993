package mcp

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"webcodex/internal/fault"
)

// maxSocketPath is what sun_path holds on the smallest system served (darwin: 104 with NUL).
const maxSocketPath = 103

// ListenSocket opens the unix socket of the data directory, 0600, behind a PeerListener. The
// caller holds the directory's lock, so a socket that lies there is a dead server's and is
// replaced.
func ListenSocket(path string, logger *slog.Logger) (*PeerListener, error) {
	if len(path) > maxSocketPath {
		return nil, fault.New(fault.Unavailable, "the path of the data directory is too long for a socket in it").
			WithNext("name a shorter one with --data")
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fault.Wrap(err, fault.Unavailable, "the old socket cannot be removed")
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the socket %s cannot be opened", filepath.Base(path))
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fault.Wrap(err, fault.Unavailable, "the socket cannot be kept from others")
	}
	return NewPeerListener(l, logger), nil
}

// PeerListener accepts connections of this process's own uid only. The directory's mode
// keeps others out already; this holds when somebody opened it (faults.md 4, Local access).
type PeerListener struct {
	*net.UnixListener
	uid    int
	logger *slog.Logger
}

// NewPeerListener wraps a listener; a nil logger logs nothing.
func NewPeerListener(l *net.UnixListener, logger *slog.Logger) *PeerListener {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &PeerListener{UnixListener: l, uid: os.Geteuid(), logger: logger}
}

// Accept waits for a connection of the own uid. Others are closed without a byte; so is one
// whose uid cannot be read.
func (l *PeerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(c)
		if err == nil && uid == l.uid {
			return c, nil
		}
		l.logger.Warn("socket connection refused", "peer_uid", uid, "known", err == nil)
		_ = c.Close()
	}
}
