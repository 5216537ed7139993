package validate

import (
	"context"
	"encoding/json"
	"strings"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// GoTestIn is the input of go_test.
type GoTestIn struct {
	Project      string   `json:"project"`
	SessionID    string   `json:"session_id,omitempty"`
	Packages     []string `json:"packages,omitempty"`
	Cwd          string   `json:"cwd,omitempty"`
	TimeoutSecs  int      `json:"timeout_secs,omitempty"`
	SyncWaitSecs *int     `json:"sync_wait_secs,omitempty"`
	RequireTests bool     `json:"require_tests,omitempty"`
	MinTests     int      `json:"min_tests,omitempty"`
	Purpose      string   `json:"purpose,omitempty"`
	Expectation  string   `json:"result_expectation,omitempty"`
}

// GoTest runs go test and reads its events.
var GoTest = call.Spec{
	Name: "go_test", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: GoTestIn{}, Evidence: goTestEvidence, Expects: true, Run: goTest,
}

func goTestEvidence(args json.RawMessage) event.Input {
	var in GoTestIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Executable: "go", Packages: in.Packages, Cwd: evidence.Cwd(in.Cwd), TimeoutSecs: timeoutOf(in.TimeoutSecs), Purpose: in.Purpose,
		Expectation: in.Expectation, MinTests: minTests(in.RequireTests, in.MinTests)}
}

func goTest(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[GoTestIn](c)
	if err != nil {
		return call.Result{}, err
	}
	p, err := goPlan(in, projectOf(c))
	if err != nil {
		return call.Result{}, err
	}
	return p.execute(ctx, c)
}

func goPlan(in GoTestIn, project string) (plan, error) {
	packages := in.Packages
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	for _, p := range packages {
		// A pattern begins with a dot, so that it is never taken for a flag or fetched.
		if p != "." && !strings.HasPrefix(p, "./") || len(p) > MaxPackageBytes || leadsUp(p) {
			return plan{}, fault.New(fault.InvalidArguments, "a package is . or begins with ./ and stays in the Project").WithField("packages").
				WithNext("use ./... for everything below cwd")
		}
	}
	return plan{
		tool: "go_test",
		process: wire.ProcessIn{Executable: "go", Args: append([]string{"test", "-json"}, packages...), Cwd: in.Cwd,
			Parser: evidence.ParserGoJSON},
		scope:   evidence.Scope{Project: project, Tool: "go_test", Cwd: evidence.Cwd(in.Cwd), Packages: packages},
		purpose: in.Purpose, timeoutSecs: in.TimeoutSecs, syncWait: in.SyncWaitSecs,
		minTests: minTests(in.RequireTests, in.MinTests), unmade: noGoModule, text: goText,
	}, nil
}

func leadsUp(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return true
		}
	}
	return strings.ContainsRune(p, 0)
}

// minTests is the demand of a request; requiring tests is asking for one (VAL-13).
func minTests(require bool, least int) int {
	if require {
		return max(1, least)
	}
	return least
}

func noGoModule(x *wire.ProcessOutcome) bool {
	for _, text := range append([]string{x.Stderr.Text}, messages(x.Tests)...) {
		for _, sign := range []string{"go.mod file not found", "cannot find main module", "does not contain main module"} {
			if strings.Contains(text, sign) {
				return true
			}
		}
	}
	return false
}

func messages(t *wire.TestReport) []string {
	if t == nil {
		return nil
	}
	out := make([]string, 0, len(t.Diagnostics))
	for _, d := range t.Diagnostics {
		out = append(out, d.Message)
	}
	return out
}

// goText is what go test prints for people, from the kept events; marks of the run's course
// are left out.
func goText(raw string, truncated bool) string {
	var b strings.Builder
	for i, line := range strings.Split(raw, "\n") {
		var e struct{ Output string }
		switch {
		case json.Unmarshal([]byte(line), &e) == nil:
			if t := strings.TrimLeft(e.Output, " "); !strings.HasPrefix(t, "=== ") && !strings.HasPrefix(t, "--- PASS") {
				b.WriteString(e.Output)
			}
		case i == 0 && truncated: // the rest of an event that was cut
		case line != "":
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
