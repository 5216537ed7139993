package run

import "time"

// Bounds of the run tools (EXE-37, EXE-22, tools.md).
const (
	MaxExecutableBytes = 1024
	MaxArgs            = 256
	MaxArgBytes        = 8192
	// MaxArgvBytes bounds all arguments together.
	MaxArgvBytes    = 16_000
	MaxCwdBytes     = 1024
	MaxCommandBytes = 16_000
	MaxScriptBytes  = 512 << 10
	MaxStdinBytes   = 64 << 10
	MinTimeoutSecs  = 1
	MaxTimeoutSecs  = 3600
	// MaxShellTimeoutSecs is lower: longer work is a process or a script.
	MaxShellTimeoutSecs = 120
	DefaultTimeoutSecs  = 60
	// MaxSyncWaitSecs is the longest an answer waits before the run becomes a Job; a request
	// may lower it.
	MaxSyncWaitSecs = 10

	// MaxObserveItems, MaxObserveWaitSecs and the tail lines of observe_jobs.
	MaxObserveItems    = 8
	MaxObserveWaitSecs = 60
	DefaultTailLines   = 40
	MaxTailLines       = 200
	// observeMargin is the time an answer may take beyond the wait itself.
	observeMargin = 10 * time.Second
)

// Languages of run_script and shells of run_shell.
var (
	Languages = []string{"sh", "bash", "powershell", "python", "node"}
	Shells    = []string{"sh", "bash"}
)
