package proc

import "time"

const (
	// KeptBytes is how much of a stream's end stays in memory: 12,000 characters of four bytes
	// and one more, so that a cut can be told from a whole (EXE-37, shapes.md 4).
	KeptBytes = 64 << 10
	// KeptChars is the part of a stream that an answer shows.
	KeptChars = 12_000

	// termGrace is the time between SIGTERM and SIGKILL at a deadline: long enough to flush,
	// short enough that the call still ends at its limit.
	termGrace = 750 * time.Millisecond
	// leftoverGrace is the same for what outlives the process itself.
	leftoverGrace = 150 * time.Millisecond
	// waitDelay is how long output may still arrive after the process ended, before whoever
	// holds the pipe is ended too.
	waitDelay = 300 * time.Millisecond
	// killWait is how long a killed process may take to vanish before it is named instead.
	killWait = 2 * time.Second
	// freezeWait is how long a frozen group may take to stand still.
	freezeWait = 500 * time.Millisecond
	// cellAge is how old an empty control group of a living process must be to be one that was
	// left.
	cellAge = time.Minute
	// killRounds bounds the hunt for members that fork while being ended.
	killRounds = 20
	// maxNamed bounds the list of members that could not be ended.
	maxNamed = 8
	// strangerAge is how long a dead child that nobody here started may wait for its real
	// parent's call before it is reaped as an orphan of an execution.
	strangerAge = 15 * time.Second
	// sweepEvery is the least time between two looks for dead orphans.
	sweepEvery = 50 * time.Millisecond

	// terminalRows and terminalColumns are the size of an interactive execution's terminal.
	terminalRows    = 24
	terminalColumns = 80
	// inputWait is how long a terminal may take to take what is typed.
	inputWait = 2 * time.Second
	// glanceEvery is the time between two looks at a terminal; once nothing has changed for
	// steadyAfter it is glanceSteady.
	glanceEvery  = 200 * time.Millisecond
	glanceSteady = time.Second
	steadyAfter  = 10 * time.Second
	// idleShare: what uses less than this part of a processor between two looks did nothing.
	idleShare = 100
	// maxWaited bounds the files of one wait that are looked at, maxAncestors a line of parents.
	maxWaited    = 4096
	maxAncestors = 64
	// maxLine bounds LastLine, in characters.
	maxLine = 200
)
