package shell

import (
	"encoding/json"
	"slices"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// View is how a shell stands.
type View struct {
	ShellID  event.ShellID   `json:"shell_id"`
	State    wire.ShellState `json:"shell_state"`
	Reason   *string         `json:"close_reason"` // null: it is open
	Busy     bool            `json:"busy"`
	Project  string          `json:"project"`
	Session  event.SessionID `json:"session_id"`
	Client   event.ClientID  `json:"client_id"`
	Executor string          `json:"executor"` // local, ssh
	Resource *string         `json:"resource"`
	Dialect  string          `json:"dialect"`
	Profile  *string         `json:"profile"`
	// Cwd is where it was opened, null for where a resource begins; it may have gone elsewhere.
	Cwd      *string `json:"cwd"`
	Created  string  `json:"created_at"`
	Used     string  `json:"last_used_at"`
	Ended    *string `json:"ended_at"`
	Commands int     `json:"commands"`
	IdleSecs int     `json:"idle_timeout_secs"`
	ExitCode *int    `json:"shell_exit_code,omitempty"`
	InitCode *int    `json:"init_exit_code,omitempty"`
	Remote   string  `json:"remote_process,omitempty"`
}

func viewOf(c *call.Call, v wire.ShellView) View {
	maybe := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return View{ShellID: v.ID, State: v.State, Reason: maybe(v.Reason), Busy: v.Busy, Project: c.Target.Ref.String(), Session: c.Session.ID,
		Client: c.Target.Ref.Client, Executor: v.Executor, Resource: maybe(v.Resource), Dialect: v.Dialect, Profile: maybe(v.Profile), Cwd: maybe(v.Cwd),
		Created: v.Created, Used: v.Used, Ended: maybe(v.Ended), Commands: v.Commands, IdleSecs: v.IdleSecs, ExitCode: v.ExitCode,
		InitCode: v.InitExitCode, Remote: v.RemoteProcess}
}

// Actions of ShellFacts.
const (
	actionOpen    = "open"
	actionExecute = "execute"
	actionClose   = "close"
)

func factsOf(action string, v wire.ShellView) *event.ShellFacts {
	return &event.ShellFacts{ID: v.ID, Action: action, State: string(v.State), Reason: v.Reason}
}

// read decodes the body of an effect's result.
func read[Out any](r *wire.Result) (Out, error) {
	var out Out
	if err := json.Unmarshal(r.Body, &out); err != nil {
		return out, fault.Wrap(err, fault.Internal, "the Runner's answer could not be read")
	}
	return out, nil
}

// needs refuses where the Runner cannot do what is asked: nothing falls back on anything (SHL-05).
func needs(c *call.Call, op wire.Op) error {
	switch {
	case c.Session == nil:
		return fault.New(fault.InvalidArguments, "a persistent shell is of a Session").WithField("session_id").
			WithNext("give the session_id that work_on_project gave")
	case c.Target == nil:
		return fault.New(fault.RunnerUnavailable, "the Runner of this Project is not connected").WithNext("call list_projects")
	case serves(c.Fleet(), *c.Target, op):
		return nil
	}
	f := fault.New(fault.CapabilityUnavailable, "the Runner of this Project keeps no persistent shells").WithNext("use run_shell")
	if op == wire.OpShellOpenSSH {
		f = fault.New(fault.CapabilityUnavailable, "the Runner of this Project keeps no persistent shells on named resources").
			WithField("resource").WithNext("use run_shell, or a Session without a resource")
	}
	f.ExecutionState = string(event.NotStarted)
	return f.WithReason(string(op))
}

// lived finds in the Session's record what was last kept of a shell that no Runner has any more:
// nothing brings it back (SHL-27).
func lived(c *call.Call, id event.ShellID) (last event.ShellFacts, at string, found bool) {
	v, err := c.Sessions().Load(c.Session.ID)
	if err != nil {
		return last, "", false
	}
	for _, it := range slices.Backward(v.Tail.Items()) {
		if it.Kind != session.KindToolCallFinished {
			continue
		}
		if e, ok := it.Event().(event.ToolCallFinished); ok && e.Shell != nil && e.Shell.ID == id {
			return *e.Shell, event.FormatTime(it.At), true
		}
	}
	return last, "", false
}
