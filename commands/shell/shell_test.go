package shell_test

import (
	"context"
	"encoding/json"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/commands/shell"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

type args = map[string]any

var alpha = calltest.Alpha.String()

func work(e *calltest.Env, a args) event.SessionID {
	a["project"], a["instruction"] = alpha, "do it"
	return calltest.Must[session.WorkOut](e, &session.WorkOnProject, a).SessionID
}

// A shell needs persistent_shell, one on a named resource ssh_persistent_shell besides, and
// ssh_shell stands for neither. Where one lacks nothing is offered, and nothing in its place.
// Covers: SHL-04, SHL-05, SSH-07
func TestShellsNeedTheirCapabilities(t *testing.T) {
	const local, remote, single = string(wire.OpShellOpen), string(wire.OpShellOpenSSH), string(wire.OpSSHShell)
	for name, c := range map[string]struct {
		has              []string
		plain, resourced bool
	}{
		"none":               {nil, false, false},
		"single commands":    {[]string{single, "shell"}, false, false},
		"shells":             {[]string{local}, true, false},
		"shells and single":  {[]string{local, single}, true, false},
		"only on resources":  {[]string{remote}, false, false},
		"both":               {[]string{local, remote}, true, true},
		"everything":         {[]string{local, remote, single}, true, true},
		"single and remotes": {[]string{remote, single}, false, false},
	} {
		for _, resourced := range []bool{false, true} {
			e := calltest.New(t, nil)
			e.Fleet.Capabilities = c.has
			var offered []wire.Op
			var sent wire.ShellOpenIn
			e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
				offered = append(offered, x.Offer.Op)
				if err := json.Unmarshal(x.Offer.Body, &sent); err != nil {
					t.Error(err)
				}
				return e.Fleet.Succeed(ctx, x)
			}
			context := args{"default_shell": "bash"}
			may, op := c.plain, wire.OpShellOpen
			if resourced {
				context["resource"] = "build"
				may, op = c.resourced, wire.OpShellOpenSSH
			}
			id := work(e, args{"execution_context": context})
			_, err := e.Call(&shell.Open, args{"project": alpha, "session_id": id})
			f := fault.As(err)
			switch {
			case may && (len(offered) != 1 || offered[0] != op || sent.Session != id || sent.Shell != "bash" || (sent.Resource == "build") != resourced):
				t.Errorf("%s, resource %v: offered %v %+v", name, resourced, offered, sent)
			case !may && (f == nil || f.Kind != fault.CapabilityUnavailable || f.ExecutionState != string(event.NotStarted) || len(offered) != 0):
				t.Errorf("%s, resource %v: %v, offered %v", name, resourced, f, offered)
			}
		}
	}
	e := calltest.New(t, nil)
	id := work(e, args{})
	e.Fleet.Disconnect(calltest.Alpha)
	e.Refused(calltest.Owner(), &shell.Open, args{"project": alpha, "session_id": id}, fault.RunnerUnavailable)
}
