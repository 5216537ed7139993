package wire

import (
	"reflect"
	"time"

	"webcodex/eventlog/event"
)

// Ops of persistent shells. The names of the first two are capabilities: a shell on a named
// resource needs both (SHL-05), and neither has to do with ssh_shell (SSH-07).
const (
	OpShellOpen    Op = "persistent_shell"         // on the Runner's own machine
	OpShellOpenSSH Op = "ssh_persistent_shell"     // on a named resource
	OpShellExecute Op = "persistent_shell_execute" // one command
	OpShellClose   Op = "persistent_shell_close"
	OpShellStatus  Op = "persistent_shell_status"
	// OpShellRelease tells that a Session was closed. It ends what it finds and may be repeated, so
	// it is no effect that is journaled (SHL-20).
	OpShellRelease Op = "persistent_shell_release"
)

// Bounds of persistent shells that both ends hold.
const (
	// MaxShellCommandBytes is of an authored command (SHL-30).
	MaxShellCommandBytes = 16_000
	// MaxShellOutputBytes is what is kept of each stream of one command (SHL-22).
	MaxShellOutputBytes = 256 << 10
	// MaxShellEncodedBytes bounds one stream as it travels, escapes included.
	MaxShellEncodedBytes = 450 << 10
	// ShellInitTime bounds the start of a shell with its profile (SHL-10).
	ShellInitTime = 30 * time.Second
	// ShellOpenTime bounds an open altogether, a connection included.
	ShellOpenTime = ShellInitTime + 15*time.Second
)

// ShellState is how a persistent shell stands (SHL-26).
type ShellState string

// States of a persistent shell; all but the first two are for good.
const (
	ShellOpening  ShellState = "opening"
	ShellRunning  ShellState = "running"
	ShellExited   ShellState = "exited"   // it ended by itself
	ShellClosed   ShellState = "closed"   // it was ended, by a caller or because its time was over
	ShellPoisoned ShellState = "poisoned" // it was ended because nobody knew any more where it stood
	ShellLost     ShellState = "lost"     // nobody can reach it any more
)

// Reasons why a shell is no longer open (SHL-19).
const (
	ShellByCaller     = "explicit_close"
	ShellBySession    = "session_closed"
	ShellByIdle       = "idle_timeout"
	ShellByProject    = "project_disabled"
	ShellByDisconnect = "runner_disconnected"
	ShellByShutdown   = "runner_shutdown"
	ShellByExit       = "shell_process_exited"
	ShellByDamage     = "control_channel_lost"
	ShellByTimeout    = "command_timeout_sync_lost"
	ShellByTransport  = "ssh_transport_failed"
	ShellByRestart    = "runner_or_server_restarted" // it lived in an earlier life
)

// ShellOpenIn opens a shell for a Session. What is empty is the Runner's to choose (SHL-07).
type ShellOpenIn struct {
	Session event.SessionID `json:"session"`
	Shell   string          `json:"shell,omitempty"` // sh, bash
	Cwd     string          `json:"cwd,omitempty"`   // project-relative; with a resource a directory there
	// Resource is for OpShellOpenSSH alone. Of it only the name travels (SSH-10).
	Resource string `json:"resource,omitempty"`
}

// ShellAt names a shell together with the Session that it is of; the Project is the fence's
// (SHL-14).
type ShellAt struct {
	Session event.SessionID `json:"session"`
	ID      event.ShellID   `json:"id"`
}

// ShellView is how a shell stands. Nothing of it tells what was run in it.
type ShellView struct {
	ID       event.ShellID `json:"shell_id"`
	State    ShellState    `json:"shell_state"`
	Reason   string        `json:"close_reason,omitempty"`
	Busy     bool          `json:"busy"`
	Dialect  string        `json:"dialect"`
	Profile  string        `json:"profile,omitempty"`
	Executor string        `json:"executor"` // local, ssh
	Resource string        `json:"resource,omitempty"`
	Cwd      string        `json:"cwd"` // where it was opened; project-relative, or a directory there
	Created  string        `json:"created_at"`
	Used     string        `json:"last_used_at"`
	Ended    string        `json:"ended_at,omitempty"`
	Commands int           `json:"commands"` // that were given to it
	ExitCode *int          `json:"shell_exit_code,omitempty"`
	IdleSecs int           `json:"idle_timeout_secs"`
	// InitExitCode is of the profile's script; nil: there is none.
	InitExitCode *int `json:"init_exit_code,omitempty"`
	// RemoteProcess is "unknown" where something of it may live on a resource.
	RemoteProcess string `json:"remote_process,omitempty"`
}

// ShellExecuteIn is one command for a shell. Its limit is the offer's.
type ShellExecuteIn struct {
	ShellAt
	Command string `json:"command"`
	Chars   int    `json:"chars"` // of each stream that the answer may have
}

// ShellExecuteOut is how it ended. Reset tells that the shell ended with it because it could not
// be brought back (SHL-26).
type ShellExecuteOut struct {
	Shell      ShellView `json:"shell"`
	Completed  bool      `json:"completed"` // the end of the command was seen
	ExitCode   *int      `json:"exit_code,omitempty"`
	TimedOut   bool      `json:"timed_out"`
	Cancelled  bool      `json:"cancelled"`
	Reset      bool      `json:"reset"`
	Exited     bool      `json:"exited"` // the shell ended by the command (SHL-31)
	DurationMS int64     `json:"duration_ms"`
	Stdout     Stream    `json:"stdout"`
	Stderr     Stream    `json:"stderr"`
}

// ShellCloseOut tells how a close found the shell (SHL-18).
type ShellCloseOut struct {
	Shell         ShellView `json:"shell"`
	AlreadyClosed bool      `json:"already_closed"`
}

// ShellReleaseIn names the Session that was closed.
type ShellReleaseIn struct {
	Session event.SessionID `json:"session"`
}

// ShellReleaseOut counts what was ended.
type ShellReleaseOut struct {
	Ended int `json:"ended"`
}

func init() {
	addOp[ShellOpenIn, ShellView](OpShellOpen, true)
	addOp[ShellOpenIn, ShellView](OpShellOpenSSH, true)
	addOp[ShellExecuteIn, ShellExecuteOut](OpShellExecute, true)
	addOp[ShellAt, ShellCloseOut](OpShellClose, true)
	addOp[ShellAt, ShellView](OpShellStatus, false)
	addOp[ShellReleaseIn, ShellReleaseOut](OpShellRelease, false)
}

// OfShell reports an effect on persistent shells: it is no change of files that the server could
// name, and never a Job (SHL-27).
func (op Op) OfShell() bool {
	out := Ops[op].Out
	return out == reflect.TypeFor[ShellView]() || out == reflect.TypeFor[ShellExecuteOut]() || out == reflect.TypeFor[ShellCloseOut]()
}
