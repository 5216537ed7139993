package shell

import (
	"time"

	"webcodex/runner/wire"
)

// Bounds of the shell tools (SHL-22, SHL-30). What the Runner checks again has one number for both.
const (
	// MaxCommandBytes is of one command.
	MaxCommandBytes = wire.MaxShellCommandBytes
	// MinTimeoutSecs and MaxTimeoutSecs are of one command.
	MinTimeoutSecs = int(wire.MinTimeout / time.Second)
	// MaxTimeoutSecs: see MinTimeoutSecs.
	MaxTimeoutSecs = int(wire.MaxTimeout / time.Second)
	// DefaultTimeoutSecs is of a command that names none.
	DefaultTimeoutSecs = 60
	// DefaultOutputChars is what an answer shows of each stream, the end of it; MaxOutputChars is
	// what is kept (SHL-22).
	DefaultOutputChars = 12_000
	// MaxOutputChars: see DefaultOutputChars.
	MaxOutputChars = wire.MaxShellOutputBytes
	// MaxCwdBytes is of a directory; one of the Project is shorter.
	MaxCwdBytes = wire.MaxRemoteCwdBytes

	// closeTime bounds a close on the Runner.
	closeTime = 15 * time.Second
	// releaseTime bounds how long the close of a Session waits for its shell's end, releaseTries how
	// often the Runner is asked.
	releaseTime  = 5 * time.Second
	releaseTries = 4
)

// Dialects of a shell, as the Runner knows them.
var Dialects = wire.Shells
