package validate

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner/wire"
)

// NPMTestIn is the input of npm_test.
type NPMTestIn struct {
	Project      string `json:"project"`
	SessionID    string `json:"session_id,omitempty"`
	Script       string `json:"script,omitempty"`
	Cwd          string `json:"cwd,omitempty"`
	TimeoutSecs  int    `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int   `json:"sync_wait_secs,omitempty"`
	RequireTests bool   `json:"require_tests,omitempty"`
	MinTests     int    `json:"min_tests,omitempty"`
	Purpose      string `json:"purpose,omitempty"`
	Expectation  string `json:"result_expectation,omitempty"`
}

// NPMTest runs a package's test script. What that prints is its own choice: where it is TAP, tests
// are counted, else the exit status alone is read.
var NPMTest = call.Spec{
	Name: evidence.KindNPM, Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: NPMTestIn{}, Evidence: npmTestEvidence, Expects: true, Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
		return planned(ctx, c, npmTestPlan)
	},
}

// npmTestEvidence keeps the script's name where packages stand for other tools.
func npmTestEvidence(args json.RawMessage) event.Input {
	var in NPMTestIn
	_ = json.Unmarshal(args, &in)
	e := event.Input{Executable: "npm", Cwd: evidence.Cwd(in.Cwd), TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose,
		Expectation: in.Expectation, MinTests: minTests(in.RequireTests, in.MinTests)}
	if in.Script != "" {
		e.Packages = []string{in.Script}
	}
	return e
}

// quietNode keeps what runs under npm from asking, colouring, watching files, and looking for news.
var quietNode = []string{"CI=true", "NO_COLOR=1", "FORCE_COLOR=0", "npm_config_update_notifier=false", "npm_config_fund=false", "npm_config_audit=false"}

func npmTestPlan(in NPMTestIn, project string) (plan, error) {
	script := cmp.Or(in.Script, "test")
	return plan{tool: evidence.KindNPM,
		process: wire.ProcessIn{Executable: "npm", Args: []string{"run", script}, Cwd: in.Cwd, Parser: evidence.ParserTAP, Env: quietNode},
		scope:   evidence.Scope{Project: project, Tool: evidence.KindNPM, Cwd: evidence.Cwd(in.Cwd), Packages: []string{script}},
		purpose: in.Purpose, timeoutSecs: in.TimeoutSecs, syncWait: in.SyncWaitSecs, minTests: minTests(in.RequireTests, in.MinTests),
		unmade: noNPMScript, nothing: "there is no package with that script in this directory"}, nil
}

func noNPMScript(x *wire.ProcessOutcome) bool {
	text := x.Stderr.Text
	return strings.Contains(text, "package.json") && strings.Contains(text, "ENOENT") || strings.Contains(text, "Missing script:")
}

// PytestIn is the input of pytest.
type PytestIn struct {
	Project      string   `json:"project"`
	SessionID    string   `json:"session_id,omitempty"`
	Paths        []string `json:"paths,omitempty"`
	Keyword      string   `json:"keyword,omitempty"`
	Cwd          string   `json:"cwd,omitempty"`
	TimeoutSecs  int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int     `json:"sync_wait_secs,omitempty"`
	RequireTests bool     `json:"require_tests,omitempty"`
	MinTests     int      `json:"min_tests,omitempty"`
	Purpose      string   `json:"purpose,omitempty"`
	Expectation  string   `json:"result_expectation,omitempty"`
}

// Pytest runs pytest and reads its JUnit report, which it writes into a file of the Runner's.
var Pytest = call.Spec{
	Name: "pytest", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: PytestIn{}, Evidence: pytestEvidence, Expects: true, Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
		return planned(ctx, c, pytestPlan)
	},
}

// pytestEvidence leaves the keyword out: it is free text.
func pytestEvidence(args json.RawMessage) event.Input {
	var in PytestIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Executable: "pytest", Packages: in.Paths, Cwd: evidence.Cwd(in.Cwd), TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose,
		Partial: in.Keyword != "", Expectation: in.Expectation, MinTests: minTests(in.RequireTests, in.MinTests)}
}

func pytestPlan(in PytestIn, project string) (plan, error) {
	args := []string{"-q", "--color=no", "-o", "junit_family=xunit2"}
	if in.Keyword != "" {
		args = append(args, "-k="+in.Keyword)
	}
	for _, p := range in.Paths {
		// A test may be named within its file: it begins like a path, and is never taken for an option.
		name, _, _ := strings.Cut(p, "::")
		_, err := relpath.Split(name) // cwd itself, ".", is a directory of tests too
		if name == "" {
			err = relpath.Refuse(relpath.Empty, nil)
		}
		if err != nil {
			return plan{}, fault.As(err).WithField("paths")
		}
		if strings.HasPrefix(p, "-") {
			return plan{}, fault.New(fault.InvalidArguments, "a path does not begin with a dash; write ./ before it").WithField("paths")
		}
		args = append(args, p)
	}
	return plan{tool: "pytest",
		process: wire.ProcessIn{Executable: "pytest", Args: args, Cwd: in.Cwd, Parser: evidence.ParserJUnit, ReportArg: "--junitxml=",
			Env: []string{"PYTHONDONTWRITEBYTECODE=1"}},
		scope:   evidence.Scope{Project: project, Tool: "pytest", Cwd: evidence.Cwd(in.Cwd), Packages: in.Paths, Filter: in.Keyword},
		purpose: in.Purpose, timeoutSecs: in.TimeoutSecs, syncWait: in.SyncWaitSecs, minTests: minTests(in.RequireTests, in.MinTests),
		unmade: noPytests, nothing: "pytest collected no tests here", text: pytestText}, nil
}

// pytestNoTests is how pytest ends where it found no test.
const pytestNoTests = 5

func noPytests(x *wire.ProcessOutcome) bool { return x.ExitCode != nil && *x.ExitCode == pytestNoTests }

// pytestText leaves out where the report went: it is gone.
func pytestText(raw string, _ bool) string {
	var kept []string
	for line := range strings.SplitSeq(raw, "\n") {
		if !strings.Contains(line, "generated xml file: ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
