package run

import (
	"time"

	"webcodex/commands/evidence"
	"webcodex/runner/wire"
)

// Bounds of the run tools (EXE-22, EXE-37). What the Runner checks again has one number for
// both.
const (
	MaxExecutableBytes = wire.MaxExecutableBytes
	MaxArgs            = wire.MaxArgs
	MaxArgBytes        = wire.MaxArgBytes
	// MaxArgvBytes bounds all arguments together.
	MaxArgvBytes   = wire.MaxArgvBytes
	MaxCwdBytes    = wire.MaxCwdBytes
	MaxScriptBytes = wire.MaxScriptBytes
	MaxStdinBytes  = wire.MaxStdinBytes
	MaxInputBytes  = wire.MaxInputBytes
	// MaxIdempotencyKeyBytes bounds the key under which a call may be repeated.
	MaxIdempotencyKeyBytes = 128
	// MaxCommandBytes is of an authored command; what quoting adds counts on the wire alone.
	MaxCommandBytes = 16_000
	MinTimeoutSecs  = int(wire.MinTimeout / time.Second)
	MaxTimeoutSecs  = int(wire.MaxTimeout / time.Second)
	// MaxShellTimeoutSecs is lower: longer work is a process or a script.
	MaxShellTimeoutSecs = 120
	DefaultTimeoutSecs  = 60
	// DefaultJobTimeoutSecs is of a Job, from its start.
	DefaultJobTimeoutSecs = MaxTimeoutSecs
	// MaxSyncWaitSecs is the longest an answer waits before the run becomes a Job; a request
	// may lower it.
	MaxSyncWaitSecs = 10

	// InteractiveWait is the same for an interactive run, which is a Job sooner: it is there to be
	// answered.
	InteractiveWait = 2 * time.Second
	// inputTimeout bounds one send_execution_input on the Runner.
	inputTimeout = 10 * time.Second

	// MaxAcceptedExitCodes and MaxExitCode of run_process (EXE-32).
	MaxAcceptedExitCodes = evidence.MaxAcceptedExitCodes
	MaxExitCode          = evidence.MaxExitCode

	// MaxObserveItems, MaxObserveWaitSecs and the tail lines of observe_jobs.
	MaxObserveItems    = 8
	MaxObserveWaitSecs = 60
	DefaultTailLines   = 40
	MaxTailLines       = 200
	// MaxListed Jobs on one page of list_jobs; DefaultListed of them where the caller says nothing.
	MaxListed     = wire.MaxJobStates
	DefaultListed = 20
	// MaxLogBytes of one stream on one page of read_job_log, and the lines of its end.
	MaxLogBytes     = 20_000
	DefaultLogBytes = 12_000
	MaxLogLines     = 500
	DefaultLogLines = 200
	// statesWait bounds the question how Jobs are, retryStates the pause before a Runner that is
	// away is asked again.
	statesWait  = 5 * time.Second
	retryStates = 500 * time.Millisecond
	// observeMargin is the time an answer may take beyond the wait itself.
	observeMargin = 10 * time.Second
)

// Languages of run_script and Shells of run_shell, as the Runner knows them.
var (
	Languages = wire.Languages
	Shells    = wire.Shells
)
