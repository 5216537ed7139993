package validate

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"strings"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner/wire"
)

// RunParsers are what run_validation can read.
var RunParsers = []string{evidence.ParserTAP, evidence.ParserJUnit, evidence.ParserGoJSON, evidence.ParserCargo, evidence.ParserNone}

// RunIn is the input of run_validation.
type RunIn struct {
	Project      string   `json:"project"`
	SessionID    string   `json:"session_id,omitempty"`
	Executable   string   `json:"executable"`
	Args         []string `json:"args,omitempty"`
	Parser       string   `json:"parser"`
	Report       string   `json:"report,omitempty"`
	Cwd          string   `json:"cwd,omitempty"`
	TimeoutSecs  int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int     `json:"sync_wait_secs,omitempty"`
	RequireTests bool     `json:"require_tests,omitempty"`
	MinTests     int      `json:"min_tests,omitempty"`
	Purpose      string   `json:"purpose,omitempty"`
	Expectation  string   `json:"result_expectation,omitempty"`
}

// RunValidation runs a declared command and reads what it says about tests.
var RunValidation = call.Spec{
	Name: "run_validation", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: RunIn{}, Evidence: runEvidence, Expects: true, Run: runValidation,
}

func runEvidence(args json.RawMessage) event.Input {
	var in RunIn
	_ = json.Unmarshal(args, &in)
	total := 0
	for _, a := range in.Args {
		total += len(a)
	}
	return event.Input{Executable: path.Base(strings.ReplaceAll(in.Executable, `\`, "/")), ArgCount: len(in.Args), CommandBytes: total + len(in.Executable),
		Cwd: evidence.Cwd(in.Cwd), TimeoutSecs: cmp.Or(in.TimeoutSecs, DefaultCheckSecs), Purpose: in.Purpose, Expectation: in.Expectation,
		MinTests: minTests(in.RequireTests, in.MinTests)}
}

func runValidation(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[RunIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := in.check(); err != nil {
		return call.Result{}, err
	}
	process := wire.ProcessIn{Executable: in.Executable, Args: in.Args, Cwd: in.Cwd, Parser: in.Parser, Report: in.Report}
	if in.Parser == evidence.ParserNone {
		process.Parser = ""
	}
	identity := process
	identity.Cwd = evidence.Cwd(in.Cwd)
	digest, err := c.CommandDigest(wire.OpProcess, identity)
	if err != nil {
		return call.Result{}, fault.Wrap(err, fault.Internal, "the request could not be encoded")
	}
	p := plan{tool: "run_validation", process: process, parser: in.Parser,
		scope:   evidence.Scope{Project: projectOf(c), Tool: "run_validation", Cwd: evidence.Cwd(in.Cwd), Command: digest},
		purpose: in.Purpose, timeoutSecs: cmp.Or(in.TimeoutSecs, DefaultCheckSecs), syncWait: in.SyncWaitSecs,
		minTests: minTests(in.RequireTests, in.MinTests)}
	switch in.Parser {
	case evidence.ParserGoJSON:
		p.text = goText
	case evidence.ParserCargo:
		p.text = cargoText
	}
	return p.execute(ctx, c)
}

// check refuses what the schema alone cannot.
func (in RunIn) check() error {
	total := 0
	for _, a := range in.Args {
		total += len(a)
	}
	switch {
	case total > wire.MaxArgvBytes:
		return fault.New(fault.InvalidArguments, "the arguments have more than %d bytes together", wire.MaxArgvBytes).WithField("args")
	case strings.ContainsRune(in.Executable+strings.Join(in.Args, ""), 0):
		return fault.New(fault.InvalidArguments, "an argument has no NUL byte").WithField("args").WithReason("nul")
	case in.Parser == evidence.ParserNone && (in.RequireTests || in.MinTests > 0):
		return fault.New(fault.InvalidArguments, "without a parser no test is counted, so none can be asked for").WithField("parser").
			WithNext("name the format that the command prints")
	case in.Report == "":
		return nil
	case in.Parser != evidence.ParserJUnit:
		return fault.New(fault.InvalidArguments, "only a JUnit report is read from a file").WithField("report")
	}
	if _, err := relpath.SplitFile(in.Report); err != nil {
		return fault.As(err).WithField("report")
	}
	return nil
}
