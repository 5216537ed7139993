package shell

import (
	"time"

	"webcodex/runner/wire"
)

const (
	// DefaultIdle is how long a shell may be idle (SHL-19).
	DefaultIdle = 1800 * time.Second
	// MinIdle and MaxIdle bound what an operator may choose (SHL-19).
	MinIdle = time.Second
	// MaxIdle: see MinIdle.
	MaxIdle = 86_400 * time.Second
	// DefaultMax is how many shells a Runner has (SHL-19).
	DefaultMax = 8
	// MaxShells bounds what an operator may choose (SHL-19).
	MaxShells = 64
	// Recovery is how long a command may take to be brought to an end at its limit (SHL-25).
	Recovery = 750 * time.Millisecond
	// AgainAfter is when within Recovery it is interrupted a second time.
	AgainAfter = 400 * time.Millisecond

	// maxEnded is how many ended shells are remembered (SHL-18).
	maxEnded = 128
	// maxReleased is how many closed Sessions are remembered, for an open that is in flight (SHL-20).
	maxReleased = 4096
	// openWait bounds how long a living shell may take to open the streams of a command.
	openWait = 10 * time.Second
	// maxFrame bounds what is read of one line of the control channel, in bytes.
	maxFrame = 256
	// maxDiscards is how many streams of earlier commands are read on for whoever still holds them.
	maxDiscards = 64
	// closeGrace is how long an idle shell may take to end when its input has.
	closeGrace = 250 * time.Millisecond

	maxFile     = 256 << 10 // bytes of the settings
	maxProfiles = 64
	maxInit     = wire.MaxShellCommandBytes // bytes of an init script
	maxEnv      = 256                       // variables of a profile
	maxEnvBytes = 64 << 10
	maxName     = 80
)
