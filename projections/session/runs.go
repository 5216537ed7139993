package session

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"webcodex/eventlog/event"
)

// run is one finished validation.
type run struct {
	seq         uint64
	version     uint64
	id          event.EventID
	at          time.Time
	call        event.CallID
	tool        string
	expectation string
	failureKind string
	input       *event.Input // of its start, empty where that has left the tail
	started     uint64       // sequence of its start; 0 where that has left the tail
	event.Validation
}

type repeat struct {
	run
	count int
}

// fixed is a failure that a later pass of the same target resolved.
type fixed struct{ failure, by *run }

// noInput is that of a start nobody has.
var noInput event.Input

func runOf(v View, it *Item, call event.CallID, tool, expectation, failureKind string, done event.Validation) run {
	return run{seq: it.Seq, version: it.Version, id: it.ID(v.Core.ID), at: it.At, call: call, tool: tool, expectation: expectation,
		failureKind: failureKind, input: &noInput, Validation: done}
}

// identity of what was validated: runs that share it can resolve each other (VAL-03). What was
// asked for beside it, a purpose or a number of tests, is no part of it (VAL-14, VAL-16).
type identity struct{ tool, target string }

func (r run) identity() identity {
	if r.TargetID == "" {
		return identity{r.tool, r.Scope}
	}
	return identity{r.tool, r.TargetID}
}

// neutral runs met a declared failure: neither a pass nor a failure (VAL-02).
func (r run) neutral() bool { return r.expectation == event.ExpectationMatched }

func (r run) failed() bool { return !r.neutral() && r.Passed != nil && !*r.Passed }

// proves reports a pass that counts as proof: a pass of zero tests proves and resolves
// nothing (VAL-18).
func (r run) proves() bool { return !r.neutral() && r.Passed != nil && *r.Passed && !r.ZeroTests }

// gap reports a run that ended well and did not prove what was asked for, or had nothing to
// validate: the evidence is missing, the code is not at fault (VAL-15).
func (r run) gap() bool {
	return r.failureKind == event.GapTooFewTests || r.failureKind == event.GapNoModule
}

// stale tells whether the files are other ones by now than those that the run was made on; nil
// where that cannot be told. A run under which they changed proves no state of them.
func (r run) stale(tree string) *bool {
	b := r.Bound
	switch {
	case b == nil:
		return nil
	case b.Moved:
		return new(true)
	case b.Tree == "" || tree == "":
		return nil
	}
	return new(b.Tree != tree)
}

// textless are the tools whose commands are never stored, so that no evidence repeats them.
var textless = set("run_process", "run_script", "run_shell", "run_job", "run_validation")

// again are the arguments that run the same validation once more, as far as they are stored:
// its identity is made of them, so that only then a pass resolves the failure.
func (r run) again(args map[string]any) map[string]any {
	in := r.input
	switch {
	case len(in.Packages) == 0:
	case r.tool == "cargo_test", r.tool == "cargo_check":
		args["package"] = in.Packages[0]
	case r.tool == "npm_test":
		args["script"] = in.Packages[0]
	case r.tool == "pytest":
		args["paths"] = in.Packages
	default:
		args["packages"] = in.Packages
	}
	if len(in.Features) > 0 {
		args["features"] = in.Features
	}
	for _, f := range in.Flags {
		args[f] = true
	}
	if r.tool == "cargo_check" && !slices.Contains(in.Flags, "all_targets") {
		args["all_targets"] = false // its default is true
	}
	if in.Cwd != "" {
		args["cwd"] = in.Cwd
	}
	if in.Purpose != "" {
		args["purpose"] = in.Purpose
	}
	return args
}

// missing tells that again cannot say everything.
func (r run) missing() string {
	switch {
	case textless[r.tool]:
		return "; add the same command: it is not stored"
	case r.input.Partial:
		return "; add what narrowed that call (its filter): it is not stored"
	default:
		return ""
	}
}

// name says what was validated: the tool with what it was given and where it ran. Where that is
// not known, or no text of it is stored, the opaque target has to tell one run from another.
func (r run) name() string {
	in := r.input
	name := toolName(r.tool)
	if len(in.Packages) > 0 {
		name += " " + atom(strings.Join(in.Packages, " "))
	}
	if textless[r.tool] && in.Executable != "" {
		name += " " + atom(in.Executable)
	}
	if in.Cwd != "" {
		name += " in " + atom(in.Cwd)
	}
	if in.Purpose != "" {
		name += " for " + atom(in.Purpose)
	}
	known := in.Executable != "" || in.Language != "" || in.Shell != ""
	if r.TargetID != "" && (!known || textless[r.tool] || in.Partial) {
		name += " " + atom(r.TargetID)
	}
	return name
}

// resolves reports whether a pass of the same identity speaks of what failed. One that began before
// the failure was known, and under which the files changed, may have run on those of before.
func (r *run) resolves(f *run) bool {
	return r.Bound == nil || !r.Bound.Moved || r.started > f.seq
}

// resolve walks the runs in order: a failure stays until a proven pass of the same identity.
func (ev *evidence) resolve(c Core) {
	open := map[identity]*run{}
	task := map[identity]int{} // failures since the newest instruction (HND-43)
	for i := range ev.runs {
		r := &ev.runs[i]
		switch {
		case r.gap():
			ev.gaps++
		case r.failed():
			open[r.identity()] = r
			if ev.latest != nil && r.seq > ev.latest.Seq {
				task[r.identity()]++
			}
		case r.proves():
			if f, was := open[r.identity()]; was && r.resolves(f) {
				ev.resolved = append(ev.resolved, fixed{f, r})
				delete(open, r.identity())
			}
			ev.passed, ev.proof = r.version, r
		}
	}
	for _, u := range c.Unknown {
		if u.Version > ev.passed {
			ev.unknown = append(ev.unknown, u)
		}
	}
	for _, r := range open {
		ev.failures = append(ev.failures, *r)
	}
	slices.SortFunc(ev.failures, func(a, b run) int { return cmp.Compare(b.seq, a.seq) })
	slices.SortFunc(ev.resolved, func(a, b fixed) int { return cmp.Compare(b.failure.seq, a.failure.seq) })
	for _, r := range ev.failures {
		ev.cases = append(ev.cases, r.cases()...)
		ev.unnamed += r.unnamed()
	}
	for _, r := range ev.failures {
		if n := task[r.identity()]; n >= 2 {
			ev.repeated = &repeat{r, n}
			break
		}
	}
}

// Expected counts how finished runs stood to what was expected of them (EVT-19). A failure that
// nobody declared is for somebody to act on, whatever its purpose (EXE-27, EXE-28).
type Expected struct {
	UnexpectedFailures  int `json:"unexpected_failures"`
	ExpectedFailures    int `json:"expected_failures"`
	Mismatches          int `json:"expectation_mismatches"`
	UnexpectedSuccesses int `json:"unexpected_successes"`
}

func (x *Expected) add(e *event.ToolCallFinished) {
	if !x.classified(e.Expectation) { // by a program that did not, or no run
		x.UnexpectedFailures += one(e.Status == event.StatusFailed && traitsOf(e.Tool).shell)
	}
}

// classified counts the end of a call or of a Job by its expectation result; false: it has none.
func (x *Expected) classified(result string) bool {
	switch result {
	case event.ExpectationMatched:
		x.ExpectedFailures++
	case event.ExpectationMismatch:
		x.Mismatches++
	case event.UnexpectedSuccess:
		x.UnexpectedSuccesses++
	case event.UnexpectedFailure:
		x.UnexpectedFailures++
	default:
		return false
	}
	return true
}
