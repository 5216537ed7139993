package run

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
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
	Interactive  bool     `json:"interactive,omitempty"`
	TimeoutSecs  int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int     `json:"sync_wait_secs,omitempty"`
	Purpose      string   `json:"purpose,omitempty"`
	Key          string   `json:"idempotency_key,omitempty"`
	Expectation  string   `json:"result_expectation,omitempty"`
	Accepted     []int    `json:"accepted_exit_codes,omitempty"`
}

// RunProcess runs an executable with arguments, without a shell.
var RunProcess = call.Spec{
	Name: "run_process", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: ProcessIn{}, Evidence: processEvidence, Expects: true, Run: runProcess,
}

func processEvidence(args json.RawMessage) event.Input {
	var in ProcessIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Executable: baseName(in.Executable), ArgCount: len(in.Args), StdinBytes: len(in.Stdin), Cwd: in.Cwd,
		TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose, Expectation: in.Expectation, AcceptedExitCodes: in.Accepted}
}

func runProcess(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ProcessIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := checkArgs(in.Args); err != nil {
		return call.Result{}, err
	}
	if err := checkExitCodes(in.Accepted); err != nil {
		return call.Result{}, err
	}
	return execute(ctx, c, wire.OpProcess, wire.ProcessIn{Executable: in.Executable, Args: in.Args, Stdin: in.Stdin,
		Interactive: in.Interactive, Cwd: cwdOf(c, in.Cwd)}, in.TimeoutSecs, in.SyncWaitSecs, in.Key)
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

// checkExitCodes holds the bounds of EXE-32, which the schema says too.
func checkExitCodes(codes []int) error {
	if len(codes) > MaxAcceptedExitCodes || slices.ContainsFunc(codes, func(c int) bool { return c < 0 || c > MaxExitCode }) {
		return fault.New(fault.InvalidArguments, "accepted_exit_codes are at most %d codes of 0 to %d", MaxAcceptedExitCodes, MaxExitCode).
			WithField("accepted_exit_codes")
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
func execute(ctx context.Context, c *call.Call, op wire.Op, in wire.ProcessIn, timeoutSecs int, syncWait *int, key string) (call.Result, error) {
	if err := checkNUL(in); err != nil {
		return call.Result{}, err
	}
	if err := checkResource(c); err != nil {
		return call.Result{}, err
	}
	if err := checkInteractive(c, in); err != nil {
		return call.Result{}, err
	}
	if err := in.CheckCwd(); err != nil {
		return call.Result{}, err
	}
	timeoutSecs = timeoutOf(timeoutSecs)
	declared := c.Evidence()
	scope, err := scopeOf(c, op, in, declared)
	if err != nil {
		return call.Result{}, err
	}
	in.Bind = scope != nil
	grace := graceOf(syncWait)
	if in.Interactive {
		grace = interactiveGrace(syncWait)
	}
	o, err := c.Effect(ctx, op, in, call.EffectOptions{Timeout: time.Duration(timeoutSecs) * time.Second, Grace: grace,
		Validates: scope, Key: key})
	if err != nil {
		return call.Result{}, err
	}
	out, res := FromOutcome(c.Execution(), o, timeoutSecs)
	out.Replayed = o.First != ""
	if scope != nil && o.Result != nil {
		res.Facts.Validation, _ = evidence.Validate(*scope, 0, o.Result.Process, false)
	}
	out.Expect(declared, res.Facts)
	if out.Promoted {
		out.SoFar(ctx, c)
	}
	res.Output = out
	return res, nil
}

// checkResource refuses what has no shell under a Session whose commands run on a named resource:
// it does not run there (EXE-08, EXE-09), and must not run here instead (NEG-18).
func checkResource(c *call.Call) error {
	if resourceOf(c) == "" {
		return nil
	}
	f := fault.New(fault.Unavailable, "this Session runs its commands on a named resource, where %s does not run", c.Tool()).
		WithReason("unsupported_resource").WithNext("use run_shell, or a Session without a resource")
	f.ExecutionState = string(event.NotStarted)
	return f
}

// scopeOf names what a run with a validating purpose covers; nil for any other.
func scopeOf(c *call.Call, op wire.Op, in wire.ProcessIn, declared event.Input) (*event.ValidationScope, error) {
	if !evidence.Validating(declared.Purpose) || c.Project == nil {
		return nil, nil
	}
	in.Cwd = evidence.Cwd(in.Cwd)
	digest, err := c.CommandDigest(op, in)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "the request could not be encoded")
	}
	s := evidence.Scope{Project: c.Project.Project, Tool: c.Tool(), Cwd: in.Cwd, Command: digest}
	return s.Of(declared.Purpose, evidence.ParserNone), nil
}

// graceOf is how long an answer waits before the run becomes a Job.
func graceOf(syncWait *int) time.Duration {
	if syncWait == nil {
		return call.DefaultGrace
	}
	return max(time.Duration(*syncWait)*time.Second, time.Millisecond)
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
