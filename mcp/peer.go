package mcp

import (
	"log/slog"
	"net"
	"os"

	"webcodex/internal/peercred"
)

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
		uid, err := peercred.UID(c)
		if err == nil && uid == l.uid {
			return c, nil
		}
		l.logger.Warn("socket connection refused", "peer_uid", uid, "known", err == nil)
		_ = c.Close()
	}
}
