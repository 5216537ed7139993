package validate

import (
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

// CargoTestIn is the input of cargo_test.
type CargoTestIn struct {
	Project           string   `json:"project"`
	SessionID         string   `json:"session_id,omitempty"`
	Package           string   `json:"package,omitempty"`
	Filter            string   `json:"filter,omitempty"`
	Features          []string `json:"features,omitempty"`
	AllFeatures       bool     `json:"all_features,omitempty"`
	NoDefaultFeatures bool     `json:"no_default_features,omitempty"`
	AllTargets        bool     `json:"all_targets,omitempty"`
	NoRun             bool     `json:"no_run,omitempty"`
	Cwd               string   `json:"cwd,omitempty"`
	TimeoutSecs       int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs      *int     `json:"sync_wait_secs,omitempty"`
	RequireTests      bool     `json:"require_tests,omitempty"`
	MinTests          int      `json:"min_tests,omitempty"`
	Purpose           string   `json:"purpose,omitempty"`
	Expectation       string   `json:"result_expectation,omitempty"`
}

// CargoTest runs cargo test and reads its messages and results.
var CargoTest = call.Spec{
	Name: "cargo_test", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: CargoTestIn{}, Evidence: cargoTestEvidence, Expects: true, Run: cargoTest,
}

// cargoTestEvidence leaves the filter out: it is free text. That there was one is told.
func cargoTestEvidence(args json.RawMessage) event.Input {
	var in CargoTestIn
	_ = json.Unmarshal(args, &in)
	e := event.Input{Executable: "cargo", Cwd: evidence.Cwd(in.Cwd), TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose,
		Features: in.Features, Partial: in.Filter != "", Expectation: in.Expectation, MinTests: minTests(in.RequireTests, in.MinTests)}
	for _, f := range in.flags() {
		e.Flags = append(e.Flags, f.argument)
	}
	if in.Package != "" {
		e.Packages = []string{in.Package}
	}
	return e
}

func cargoTest(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[CargoTestIn](c)
	if err != nil {
		return call.Result{}, err
	}
	p, err := cargoPlan(in, projectOf(c))
	if err != nil {
		return call.Result{}, err
	}
	return p.execute(ctx, c)
}

// cargoFlag is a boolean argument and what it is to cargo.
type cargoFlag struct{ argument, flag string }

// flags are those that are on.
func (in CargoTestIn) flags() []cargoFlag {
	var on []cargoFlag
	for _, f := range []struct {
		on bool
		cargoFlag
	}{
		{in.AllFeatures, cargoFlag{"all_features", "--all-features"}},
		{in.NoDefaultFeatures, cargoFlag{"no_default_features", "--no-default-features"}},
		{in.AllTargets, cargoFlag{"all_targets", "--all-targets"}},
		{in.NoRun, cargoFlag{"no_run", "--no-run"}},
	} {
		if f.on {
			on = append(on, f.cargoFlag)
		}
	}
	return on
}

func cargoPlan(in CargoTestIn, project string) (plan, error) {
	if strings.HasPrefix(in.Filter, "-") {
		return plan{}, fault.New(fault.InvalidArguments, "a filter is a part of a test's name and does not begin with a dash").WithField("filter")
	}
	for _, f := range in.Features {
		if f == "" || strings.ContainsAny(f, ", ") {
			return plan{}, fault.New(fault.InvalidArguments, "a feature is one name").WithField("features")
		}
	}
	args := []string{"test", "--message-format=json", "--color=never"}
	s := evidence.Scope{Project: project, Tool: "cargo_test", Cwd: evidence.Cwd(in.Cwd), Features: in.Features, Filter: in.Filter}
	if in.Package != "" {
		args = append(args, "--package="+in.Package)
		s.Packages = []string{in.Package}
	}
	if len(in.Features) > 0 {
		args = append(args, "--features="+strings.Join(slices.Compact(slices.Sorted(slices.Values(in.Features))), ","))
	}
	for _, f := range in.flags() {
		args = append(args, f.flag)
		s.Flags = append(s.Flags, f.flag)
	}
	if in.Filter != "" {
		args = append(args, "--", in.Filter)
	}
	return plan{
		tool:    "cargo_test",
		process: wire.ProcessIn{Executable: "cargo", Args: args, Cwd: in.Cwd, Parser: evidence.ParserCargo},
		scope:   s, purpose: in.Purpose, timeoutSecs: in.TimeoutSecs, syncWait: in.SyncWaitSecs,
		minTests: minTests(in.RequireTests, in.MinTests), unmade: noCargoPackage, text: cargoText,
	}, nil
}

func noCargoPackage(x *wire.ProcessOutcome) bool {
	return strings.Contains(x.Stderr.Text, "could not find `Cargo.toml`")
}

// cargoText is what tests printed, with the compiler's messages in place of their JSON.
func cargoText(raw string, truncated bool) string {
	var b strings.Builder
	for i, line := range strings.Split(raw, "\n") {
		var m struct {
			Reason  string `json:"reason"`
			Message struct {
				Rendered string `json:"rendered"`
			} `json:"message"`
		}
		switch {
		case strings.HasPrefix(line, `{"reason":"`) && json.Unmarshal([]byte(line), &m) == nil:
			b.WriteString(m.Message.Rendered)
		case i == 0 && truncated && strings.HasSuffix(line, "}"): // the rest of a message that was cut
		default:
			b.WriteString(line + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
