package validate

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// CargoCheckIn is the input of cargo_check.
type CargoCheckIn struct {
	Project           string   `json:"project"`
	SessionID         string   `json:"session_id,omitempty"`
	Package           string   `json:"package,omitempty"`
	Features          []string `json:"features,omitempty"`
	AllFeatures       bool     `json:"all_features,omitempty"`
	NoDefaultFeatures bool     `json:"no_default_features,omitempty"`
	AllTargets        *bool    `json:"all_targets,omitempty"` // absent: true
	Cwd               string   `json:"cwd,omitempty"`
	TimeoutSecs       int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs      *int     `json:"sync_wait_secs,omitempty"`
	Purpose           string   `json:"purpose,omitempty"`
	Expectation       string   `json:"result_expectation,omitempty"`
}

// CargoCheck compiles without running anything, and reads the compiler's messages.
var CargoCheck = call.Spec{
	Name: "cargo_check", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: CargoCheckIn{}, Evidence: cargoCheckEvidence, Expects: true, Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
		return planned(ctx, c, cargoCheckPlan)
	},
}

// planned makes the run that a tool's arguments ask for.
func planned[In any](ctx context.Context, c *call.Call, make func(In, string) (plan, error)) (call.Result, error) {
	in, err := call.Decode[In](c)
	if err != nil {
		return call.Result{}, err
	}
	p, err := make(in, projectOf(c))
	if err != nil {
		return call.Result{}, err
	}
	return p.execute(ctx, c)
}

// test is the same settings as cargo_test has them.
func (in CargoCheckIn) test() CargoTestIn {
	return CargoTestIn{Package: in.Package, Features: in.Features, AllFeatures: in.AllFeatures, NoDefaultFeatures: in.NoDefaultFeatures,
		AllTargets: in.AllTargets == nil || *in.AllTargets, Cwd: in.Cwd}
}

func cargoCheckEvidence(args json.RawMessage) event.Input {
	var in CargoCheckIn
	_ = json.Unmarshal(args, &in)
	e := event.Input{Executable: "cargo", Cwd: evidence.Cwd(in.Cwd), TimeoutSecs: cmp.Or(in.TimeoutSecs, DefaultCheckSecs), Purpose: in.Purpose,
		Features: in.Features, Expectation: in.Expectation}
	for _, f := range in.test().flags() {
		e.Flags = append(e.Flags, f.argument)
	}
	if in.Package != "" {
		e.Packages = []string{in.Package}
	}
	return e
}

func cargoCheckPlan(in CargoCheckIn, project string) (plan, error) {
	p, err := cargoPlan(in.test(), project)
	if err != nil {
		return plan{}, err
	}
	p.tool, p.scope.Tool = "cargo_check", "cargo_check"
	p.process.Args[0], p.process.Parser = "check", evidence.ParserCargoCheck
	p.purpose, p.timeoutSecs, p.syncWait = in.Purpose, cmp.Or(in.TimeoutSecs, DefaultCheckSecs), in.SyncWaitSecs
	p.nothing = "there is no package to check in this directory"
	return p, nil
}

// CargoFmtIn is the input of cargo_fmt.
type CargoFmtIn struct {
	Project      string `json:"project"`
	SessionID    string `json:"session_id,omitempty"`
	Check        bool   `json:"check,omitempty"`
	Cwd          string `json:"cwd,omitempty"`
	TimeoutSecs  int    `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int   `json:"sync_wait_secs,omitempty"`
	Purpose      string `json:"purpose,omitempty"`
	Expectation  string `json:"result_expectation,omitempty"`
}

// CargoFmt formats Rust files, or says which are not formatted.
var CargoFmt = call.Spec{
	Name: "cargo_fmt", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: CargoFmtIn{}, Evidence: cargoFmtEvidence, Expects: true, Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
		return planned(ctx, c, cargoFmtPlan)
	},
}

func cargoFmtEvidence(args json.RawMessage) event.Input {
	var in CargoFmtIn
	_ = json.Unmarshal(args, &in)
	e := event.Input{Executable: "cargo", Cwd: evidence.Cwd(in.Cwd), TimeoutSecs: cmp.Or(in.TimeoutSecs, DefaultFormatSecs), Purpose: in.Purpose,
		Expectation: in.Expectation}
	if in.Check {
		e.Flags = []string{"check"}
	}
	return e
}

func cargoFmtPlan(in CargoFmtIn, project string) (plan, error) {
	if !in.Check && in.TimeoutSecs > MaxFormatSecs {
		return plan{}, fault.New(fault.InvalidArguments, "formatting takes at most %d s; only with check may it take longer", MaxFormatSecs).WithField("timeout_secs")
	}
	args := []string{"fmt"}
	s := evidence.Scope{Project: project, Tool: "cargo_fmt", Cwd: evidence.Cwd(in.Cwd)}
	if in.Check {
		args = append(args, "--check")
		s.Flags = []string{"--check"}
	}
	return plan{tool: "cargo_fmt",
		process: wire.ProcessIn{Executable: "cargo", Args: append(args, "--", "--color=never"), Cwd: in.Cwd, Parser: evidence.ParserRustfmt},
		scope:   s, purpose: in.Purpose, timeoutSecs: cmp.Or(in.TimeoutSecs, DefaultFormatSecs), syncWait: in.SyncWaitSecs,
		unmade: noCargoTarget, nothing: "there is no package to format in this directory"}, nil
}

func noCargoTarget(x *wire.ProcessOutcome) bool {
	return noCargoPackage(x) || strings.Contains(x.Stderr.Text, "Failed to find targets")
}

// GoVetIn is the input of go_vet.
type GoVetIn struct {
	Project      string   `json:"project"`
	SessionID    string   `json:"session_id,omitempty"`
	Packages     []string `json:"packages,omitempty"`
	Cwd          string   `json:"cwd,omitempty"`
	TimeoutSecs  int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int     `json:"sync_wait_secs,omitempty"`
	Purpose      string   `json:"purpose,omitempty"`
	Expectation  string   `json:"result_expectation,omitempty"`
}

// GoVet runs go vet and reads what it found.
var GoVet = call.Spec{
	Name: "go_vet", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: GoVetIn{}, Evidence: goVetEvidence, Expects: true, Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
		return planned(ctx, c, goVetPlan)
	},
}

func goVetEvidence(args json.RawMessage) event.Input {
	var in GoVetIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Executable: "go", Packages: in.Packages, Cwd: evidence.Cwd(in.Cwd), TimeoutSecs: cmp.Or(in.TimeoutSecs, DefaultCheckSecs),
		Purpose: in.Purpose, Expectation: in.Expectation}
}

func goVetPlan(in GoVetIn, project string) (plan, error) {
	p, err := goPlan(GoTestIn{Packages: in.Packages, Cwd: in.Cwd}, project)
	if err != nil {
		return plan{}, err
	}
	p.tool, p.scope.Tool, p.text = "go_vet", "go_vet", nil
	p.process.Args = append([]string{"vet"}, slices.Clone(p.process.Args[2:])...)
	p.process.Parser = evidence.ParserGoVet
	p.purpose, p.timeoutSecs, p.syncWait = in.Purpose, cmp.Or(in.TimeoutSecs, DefaultCheckSecs), in.SyncWaitSecs
	p.nothing = "there is no module to vet in this directory"
	return p, nil
}
