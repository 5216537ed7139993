package wire

import (
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Ops that run a process; all take ProcessIn and end in ProcessOutcome.
const (
	OpProcess Op = "process" // executable and arguments
	OpScript  Op = "script"  // interpreter and script text
	OpShell   Op = "shell"   // command text for sh or bash
	// OpDetached is OpProcess under a supervisor of its own, which outlives the Runner. Its name is
	// the capability too.
	OpDetached Op = "detached"
)

// ProcessIn is the input of the process ops; which members are used depends on the op.
type ProcessIn struct {
	Executable string   `json:"executable,omitempty"` // OpProcess
	Args       []string `json:"args,omitempty"`       // OpProcess, OpScript
	Language   string   `json:"language,omitempty"`   // OpScript: sh, bash, powershell, python, node
	Script     string   `json:"script,omitempty"`     // OpScript, ≤ 512 KiB
	Command    string   `json:"command,omitempty"`    // OpShell, ≤ 16,000 B authored
	Shell      string   `json:"shell,omitempty"`      // OpShell: sh, bash
	Stdin      string   `json:"stdin,omitempty"`      // ≤ 64 KiB; absent: closed
	Cwd        string   `json:"cwd,omitempty"`        // project-relative, empty: the root
	// Interactive gives it a terminal in place of Stdin; what it prints comes as stdout.
	Interactive bool `json:"interactive,omitempty"`
	// Env adds fixed variables set by our own tools, never by a caller.
	Env []string `json:"env,omitempty"`
	// Parser reads stdout as it streams, or stderr where that kind does: "" or a kind of runner/testparse.
	Parser string `json:"parser,omitempty"`
	// Report is a file that the parser reads instead of stdout, relative to Cwd; one that this run
	// did not write is not read. ReportArg has the Runner add an argument of this beginning and the
	// name of a file of its own, which the parser then reads.
	Report    string `json:"report,omitempty"`
	ReportArg string `json:"report_arg,omitempty"`
	// Bind asks for the files that the run was made on, before and after it, and a hash of what
	// it prints (ProcessOutcome.Bound).
	Bind bool `json:"bind,omitempty"`
}

// Stream is what was kept of one output stream. Bytes and DroppedBytes are exact.
type Stream struct {
	Text         string `json:"text"` // valid UTF-8, the last 12,000 characters
	Bytes        int64  `json:"bytes"`
	DroppedBytes int64  `json:"dropped_bytes"`
	Truncated    bool   `json:"truncated"`
}

// ProcessOutcome is what is known about a process.
type ProcessOutcome struct {
	Started    bool   `json:"started"`
	Completed  bool   `json:"completed"` // exit status was seen
	ExitCode   *int   `json:"exit_code,omitempty"`
	Signal     string `json:"signal,omitempty"`
	TimedOut   bool   `json:"timed_out"`
	Cancelled  bool   `json:"cancelled"`
	DurationMS int64  `json:"duration_ms"`
	Stdout     Stream `json:"stdout"`
	Stderr     Stream `json:"stderr"`
	// LeftoverKilled tells that members of the execution outlived it and were ended;
	// LeftoverAlive names (pid and basename) those that could not be.
	LeftoverKilled bool        `json:"leftover_killed"`
	LeftoverAlive  []string    `json:"leftover_alive,omitempty"`
	Tests          *TestReport `json:"tests,omitempty"`
	// RemoteProcess is "unknown" where a command on a named resource may have left something
	// alive there; empty for any other.
	RemoteProcess string `json:"remote_process,omitempty"`
	// Bound is there where it was asked for.
	Bound *event.Binding `json:"bound,omitempty"`
}

// TestReport is what a parser saw.
type TestReport struct {
	Parser      string       `json:"parser"`
	Version     int          `json:"version"`
	Detected    bool         `json:"detected"` // the output was of the expected kind
	Run         int          `json:"run"`
	Passed      int          `json:"passed"`
	Failed      int          `json:"failed"`
	Skipped     int          `json:"skipped"`
	Errors      int          `json:"errors,omitempty"` // of a compiler or a check, all of them; what is built twice says it twice
	Warnings    int          `json:"warnings,omitempty"`
	FailedTests []FailedTest `json:"failed_tests,omitempty"` // ≤ 20
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`  // ≤ 20
}

// FailedTest names one failing test.
type FailedTest struct {
	Name    string `json:"name"`
	Package string `json:"package"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// Diagnostic is one build error or the like.
type Diagnostic struct {
	Kind    string `json:"kind"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// OpObserveJobs reads executions that outlived their call.
const OpObserveJobs Op = "observe_jobs"

// ObserveJobsIn asks for up to 8 jobs; WaitMS waits for a change of any of them.
type ObserveJobsIn struct {
	Items     []ObserveItem `json:"items"`
	TailLines int           `json:"tail_lines"`
	WaitMS    int64         `json:"wait_ms"`
	// Whole asks for the streams of running jobs in their Outcome too, as far as they came.
	Whole bool `json:"whole,omitempty"`
}

// ObserveItem is one job and where the caller stands.
type ObserveItem struct {
	ID    string `json:"id"`
	Token string `json:"token,omitempty"`
}

// ObserveJobsOut answers per item.
type ObserveJobsOut struct {
	Items       []JobView `json:"items"`
	WaitOutcome string    `json:"wait_outcome"` // not_waited, changed, timeout
}

// JobView is one job as the Runner sees it.
type JobView struct {
	ID       string          `json:"id"`
	Known    bool            `json:"known"`
	State    JournalState    `json:"state"`
	Terminal bool            `json:"terminal"`
	Outcome  *ProcessOutcome `json:"outcome,omitempty"` // when terminal, or asked for as Whole
	Fault    *fault.Error    `json:"fault,omitempty"`   // when terminal: why it did not start, or what is not known
	// Waiting: it waits for a slot, behind Ahead others.
	Waiting bool `json:"waiting,omitempty"`
	Ahead   int  `json:"ahead,omitempty"`
	// WaitsForInput: what runs on its terminal waits for input, as the kernel tells; LastLine is
	// then the last line that it shows.
	WaitsForInput bool   `json:"waits_for_input,omitempty"`
	LastLine      string `json:"last_line,omitempty"`
	// Stopping: it was asked to end and has not yet.
	Stopping bool `json:"stopping,omitempty"`
	// Gone: its output is no longer kept; the rest is from the journal.
	Gone bool `json:"gone,omitempty"`
	// When it was accepted, started and ended, in event.TimeForm; empty where that is not known.
	AcceptedAt  string `json:"accepted_at,omitempty"`
	StartedAt   string `json:"started_at,omitempty"`
	EndedAt     string `json:"ended_at,omitempty"`
	StdoutDelta string `json:"stdout_delta"`
	StderrDelta string `json:"stderr_delta"`
	Reset       bool   `json:"reset"` // the deltas are a fresh tail, continuity was lost or never was
	Token       string `json:"token"`
}
