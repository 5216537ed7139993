package run

import (
	"context"
	"encoding/json"
	"path"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// ProcessIn is the input of run_process.
type ProcessIn struct {
	Project      string   `json:"project"`
	SessionID    string   `json:"session_id,omitempty"`
	Executable   string   `json:"executable"`
	Args         []string `json:"args,omitempty"`
	Cwd          string   `json:"cwd,omitempty"`
	Stdin        string   `json:"stdin,omitempty"`
	TimeoutSecs  int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int     `json:"sync_wait_secs,omitempty"`
	Purpose      string   `json:"purpose,omitempty"`
}

// RunProcess runs an executable with arguments, without a shell.
var RunProcess = call.Spec{
	Name: "run_process", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: ProcessIn{}, Evidence: processEvidence, Run: runProcess,
}

func processEvidence(args json.RawMessage) event.Input {
	var in ProcessIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Executable: baseName(in.Executable), ArgCount: len(in.Args), StdinBytes: len(in.Stdin), Cwd: in.Cwd,
		TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose}
}

func runProcess(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ProcessIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := checkArgs(in.Args); err != nil {
		return call.Result{}, err
	}
	return execute(ctx, c, wire.OpProcess, wire.ProcessIn{Executable: in.Executable, Args: in.Args, Stdin: in.Stdin,
		Cwd: cwdOf(c, in.Cwd)}, in.TimeoutSecs, in.SyncWaitSecs)
}

func checkArgs(args []string) error {
	total := 0
	for _, a := range args {
		total += len(a)
	}
	if total > MaxArgvBytes {
		return fault.New(fault.InvalidArguments, "the arguments have more than %d bytes together", MaxArgvBytes).WithField("args").
			WithNext("use run_script for a larger program, or stdin and files for data")
	}
	return nil
}

// checkNUL refuses what no process can be given: a NUL ends an argument, a path, and for an
// interpreter the program. stdin is held to the same rule.
func checkNUL(in wire.ProcessIn) error {
	for _, part := range []struct{ field, text string }{
		{"executable", in.Executable}, {"args", strings.Join(in.Args, "")}, {"command", in.Command},
		{"script", in.Script}, {"stdin", in.Stdin}, {"cwd", in.Cwd},
	} {
		if strings.Contains(part.text, "\x00") {
			return fault.New(fault.InvalidArguments, "%s holds a NUL byte", part.field).WithField(part.field).WithReason("nul").
				WithNext("leave the NUL byte out, or write it by an escape of the shell or the language")
		}
	}
	return nil
}

// execute makes the run and builds its result.
func execute(ctx context.Context, c *call.Call, op wire.Op, in wire.ProcessIn, timeoutSecs int, syncWait *int) (call.Result, error) {
	if err := checkNUL(in); err != nil {
		return call.Result{}, err
	}
	if err := in.CheckCwd(); err != nil {
		return call.Result{}, err
	}
	timeoutSecs = timeoutOf(timeoutSecs)
	grace := call.DefaultGrace
	if syncWait != nil {
		grace = max(time.Duration(*syncWait)*time.Second, time.Millisecond)
	}
	o, err := c.Effect(ctx, op, in, call.EffectOptions{Timeout: time.Duration(timeoutSecs) * time.Second, Grace: grace})
	if err != nil {
		return call.Result{}, err
	}
	out, res := FromOutcome(c.Execution(), o, timeoutSecs)
	if out.Promoted {
		out.SoFar(ctx, c)
	}
	res.Output = out
	return res, nil
}

func timeoutOf(secs int) int {
	if secs == 0 {
		return DefaultTimeoutSecs
	}
	return secs
}

// cwdOf falls back on the Session's default directory.
func cwdOf(c *call.Call, cwd string) string {
	if cwd == "" && c.Session != nil {
		return c.Session.Context.DefaultCwd
	}
	return cwd
}

func baseName(executable string) string { return path.Base(strings.ReplaceAll(executable, `\`, "/")) }
