package ssh

import (
	"time"

	"webcodex/runner/wire"
)

const (
	// connectTime bounds one connection from the first byte to the accepted key, jump hosts
	// included, and the opening of a channel (SSH-13).
	connectTime = 10 * time.Second
	// idleTime is how long a connection without commands is kept (SSH-13).
	idleTime = 300 * time.Second
	// keepaliveTime is the pause between two questions whether the other side lives, and how
	// long each answer may take: a dead link is noticed within twice that.
	keepaliveTime = 15 * time.Second

	// termGrace and killGrace are how long a command may take to end after it was asked to, and
	// after it was told to.
	termGrace = 750 * time.Millisecond
	killGrace = 250 * time.Millisecond
	// drainQuiet and drainTime are how long the output of a command that ended may be silent, and
	// take in all, before whoever holds it is left to it.
	drainQuiet = 500 * time.Millisecond
	drainTime  = 5 * time.Second

	// MaxName bounds a resource's name in bytes (EXE-04).
	MaxName = 80
	// MaxCwd bounds a remote directory in bytes (EXE-07).
	MaxCwd = wire.MaxRemoteCwdBytes

	maxFile      = 256 << 10 // bytes of the settings
	maxResources = 64
	maxHops      = 4 // a resource and the hosts that are passed on the way to it
	maxKeys      = 6 // what a server lets one try before it hangs up
	maxKeyFile   = 64 << 10
	// maxTransports bounds the connections of one Runner.
	maxTransports = 64
)
