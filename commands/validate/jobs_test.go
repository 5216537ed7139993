package validate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/commands/validate"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

const endedAt = "2026-01-02T03:04:05.678Z"

// jobs is a Fleet on which every run becomes a Job; late keeps what tells its end.
type jobs struct {
	e    *calltest.Env
	mu   sync.Mutex
	late map[event.ExecutionID]func(context.Context, wire.Result) error
	over bool // the Runner's journal has the ends
	asks int
}

func becomesJobs(e *calltest.Env) *jobs {
	j := &jobs{e: e, late: map[event.ExecutionID]func(context.Context, wire.Result) error{}}
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		j.mu.Lock()
		j.late[x.Offer.ID] = x.Late
		j.mu.Unlock()
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	e.Fleet.OnQuery = func(id event.ExecutionID) (wire.QueryReply, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.asks++; !j.over {
			return wire.QueryReply{State: wire.JRunning}, nil
		}
		r := failed(id)
		return wire.QueryReply{State: wire.JTerminal, Result: &r}, nil
	}
	return j
}

// failed is an end as a Runner tells it: with output, which the log must not have.
func failed(id event.ExecutionID) wire.Result {
	one := 1
	return wire.Result{ID: id, State: wire.JTerminal, DurationMS: 77, EndedAt: endedAt, Process: &wire.ProcessOutcome{Started: true,
		Completed: true, ExitCode: &one, Stdout: wire.Stream{Text: "OUTMARK", Bytes: 7}, Stderr: wire.Stream{Text: "OUTMARK"},
		Tests: &wire.TestReport{Parser: "go-json", Version: 1, Detected: true, Run: 2, Passed: 1, Failed: 1,
			FailedTests: []wire.FailedTest{{Name: "TestX", Package: "p", Message: "OUTMARK"}}},
		Bound: &event.Binding{Commit: strings.Repeat("c", 40), Tree: strings.Repeat("a", 64), Output: strings.Repeat("b", 64)}}}
}

func ends(e *calltest.Env, id event.SessionID) []event.ExecutionFinished {
	var out []event.ExecutionFinished
	for _, x := range e.Events(id) {
		if f, ok := x.(event.ExecutionFinished); ok {
			out = append(out, f)
		}
	}
	return out
}

func summary(e *calltest.Env, id event.SessionID) view.ValidationSummary {
	e.T.Helper()
	return calltest.Must[view.ValidationSummary](e, &session.ReadValidation, args{"project": alpha, "session_id": id})
}

func updated(e *calltest.Env, id event.SessionID) time.Time {
	core, _ := e.Store.Core(id)
	return core.UpdatedAt
}

// The end of a Job that its Runner has in its journal is recorded by whoever reads, once: by any
// number of readers at a time, after the event has left the tail, after a restart, and when the
// end itself comes. It has the Runner's time, moves nothing, runs nothing, and keeps no output.
//
// Covers: VAL-03, VAL-04, VAL-05, VAL-07, VAL-08, VAL-10, VAL-11, VAL-12
func TestATerminalJobIsMaterialisedOnce(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	j := becomesJobs(e)
	out := calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id})
	job := *out.JobID
	if s := summary(e, id); s.Status != "not_run" || s.Jobs.Active != 1 || len(ends(e, id)) != 0 {
		t.Fatalf("while it runs: %+v", s)
	}
	before := updated(e, id)
	j.over = true
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if s := summary(e, id); s.Status != "failed" || s.Unresolved.Total != 1 || s.Unresolved.Items[0].Name != "p.TestX" {
				t.Errorf("%+v", s)
			}
		})
	}
	wg.Wait()
	got := ends(e, id)
	if len(got) != 1 {
		t.Fatalf("%d ends", len(got))
	}
	f := got[0]
	if f.Execution != job || f.FinishedAt != endedAt || f.DurationMS != 77 || f.FailureKind != "test_failure" || f.Expectation != event.UnexpectedFailure {
		t.Errorf("%+v", f)
	}
	if v := f.Validation; v.TargetID != out.Validation.Target || v.Scope != out.Validation.Scope || *v.Passed || v.TestsFailed != 1 || v.Bound == nil || v.Bound.Tree == "" {
		t.Errorf("%+v", v)
	}
	if now := updated(e, id); !now.Equal(before) {
		t.Errorf("activity moved from %v to %v", before, now)
	}
	if s := summary(e, id); s.Latest.At != endedAt || len(e.Fleet.Starts()) != 1 {
		t.Errorf("%+v after %d starts", s.Latest, len(e.Fleet.Starts()))
	}
	if err := j.late[job](context.Background(), failed(job)); err != nil || len(ends(e, id)) != 1 {
		t.Errorf("the end itself: %v, %d ends", err, len(ends(e, id)))
	}
	// Its event leaves the tail.
	filler := make([]event.Event, 500)
	for i := range filler {
		filler[i] = event.ContextUpdated{}
	}
	for range 5 {
		e.Append(id, filler...)
	}
	summary(e, id)
	_ = j.late[job](context.Background(), failed(job))
	e.Reopen()
	if _, err := e.Kernel.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := summary(e, id); s.Events.Total != 0 || len(ends(e, id)) != 1 {
		t.Errorf("after eviction and restart: %d runs, %d ends", s.Events.Total, len(ends(e, id)))
	}
	for _, c := range e.Commits(id) {
		if body, err := c.Encode(); err != nil || strings.Contains(string(body), "OUTMARK") {
			t.Fatalf("output is in the log (%v)", err)
		}
	}
}

// More Jobs than a Session remembers the ends of, all of them candidates at once: each gets its
// end once, however often and in whatever order they are told and read.
//
// Covers: VAL-06, VAL-09
func TestMoreTerminalJobsThanMarkers(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	j := becomesJobs(e)
	const n = view.MaxEnded + 6
	for i := range n {
		calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id, "packages": []string{fmt.Sprintf("./p%d", i)}})
	}
	j.over = true
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { summary(e, id) })
	}
	for x, late := range j.late {
		wg.Go(func() {
			if err := late(context.Background(), failed(x)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for range 2 {
		for x, late := range j.late {
			_ = late(context.Background(), failed(x))
		}
		if s := summary(e, id); s.Unresolved.Total != n || s.Jobs.Active != 0 {
			t.Errorf("%+v", s)
		}
		e.Reopen()
		if _, err := e.Kernel.Recover(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	told := map[event.ExecutionID]int{}
	for _, f := range ends(e, id) {
		told[f.Execution]++
	}
	for x, times := range told {
		if times != 1 {
			t.Errorf("%s ended %d times", x, times)
		}
	}
	if len(told) != n {
		t.Errorf("%d of %d ended", len(told), n)
	}
}

// A Job that the server did not outlive is judged in its next life by what its start said: the
// same target, the expectation, the tests asked for.
//
// Covers: VAL-08, VAL-14, EXE-35
func TestAJobIsJudgedAlikeAfterARestart(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	becomesJobs(e)
	out := calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id, "result_expectation": "failure"})
	if out.Expectation.Result != event.ExpectationNone || *out.Expectation.Declared != "failure" {
		t.Errorf("%+v", out.Expectation)
	}
	few := calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id, "packages": []string{"./few"}, "min_tests": 9})
	plain := calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id, "packages": []string{"./few"}})
	if few.Validation != plain.Validation {
		t.Errorf("the tests asked for are part of the identity: %+v", few.Validation)
	}
	e.Fleet.OnQuery = func(x event.ExecutionID) (wire.QueryReply, error) {
		r := failed(x)
		if x == *few.JobID {
			r.Process.ExitCode, r.Process.Tests = new(int), &wire.TestReport{Version: 1, Detected: true, Run: 8, Passed: 8}
		}
		if x == *plain.JobID {
			return wire.QueryReply{State: wire.JLost}, nil
		}
		return wire.QueryReply{State: wire.JSettled, Result: &r}, nil
	}
	e.Reopen()
	if _, err := e.Kernel.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	byID := map[event.ExecutionID]event.ExecutionFinished{}
	for _, f := range ends(e, id) {
		byID[f.Execution] = f
	}
	if f := byID[*out.JobID]; f.Expectation != event.ExpectationMatched || f.Validation.TargetID != out.Validation.Target || *f.Validation.Passed {
		t.Errorf("declared a failure: %+v %+v", f, f.Validation)
	}
	if f := byID[*few.JobID]; f.FailureKind != event.GapTooFewTests || f.Validation.Passed != nil || f.Validation.TestsRun != 8 {
		t.Errorf("asked for 9 tests: %+v", f)
	}
	if f := byID[*plain.JobID]; f.Effect.State != event.OutcomeUnknown || f.Validation == nil || f.Validation.Passed != nil || f.Expectation != event.UnexpectedFailure {
		t.Errorf("lost: %+v", f)
	}
	if s := summary(e, id); s.Unresolved.Total != 0 || s.Gaps != 1 {
		t.Errorf("%+v", s)
	}
}

// Covers: EXE-36
func TestAnEvictedExpectationIsSuccess(t *testing.T) {
	for _, evicted := range []bool{false, true} {
		e := calltest.New(t, nil)
		id := work(e, nil)
		j := becomesJobs(e)
		out := calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id, "result_expectation": "failure"})
		want := event.ExpectationMatched
		if evicted {
			want = event.UnexpectedFailure
			filler := make([]event.Event, 500)
			for i := range filler {
				filler[i] = event.ContextUpdated{}
			}
			for range 4 {
				e.Append(id, filler...)
			}
		}
		if err := j.late[*out.JobID](context.Background(), failed(*out.JobID)); err != nil {
			t.Fatal(err)
		}
		if got := ends(e, id); len(got) != 1 || got[0].Expectation != want || got[0].ExitCode == nil || *got[0].ExitCode != 1 {
			t.Errorf("evicted %v: %+v", evicted, got)
		}
	}
}

// A foreign reader gets nothing and writes nothing; another Project's name neither.
func TestValidationIsReadByItsOwner(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	j := becomesJobs(e)
	calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id})
	j.over = true
	a := args{"project": alpha, "session_id": id}
	e.Refused(calltest.Someone("b"), &session.ReadValidation, a, fault.SessionAuthorityDenied)
	e.Refused(calltest.Owner(call.ScopeProjectRead), &session.ReadValidation, a, fault.InsufficientScope)
	e.Refused(calltest.Owner(), &session.ReadValidation, args{"project": calltest.Beta.String(), "session_id": id}, fault.SessionProjectMismatch)
	e.Refused(calltest.Owner(), &session.ReadValidation, args{"project": alpha}, fault.InvalidArguments)
	e.Fleet.Disconnect(calltest.Alpha)
	e.Fleet.OnQuery = func(event.ExecutionID) (wire.QueryReply, error) {
		return wire.QueryReply{}, fault.New(fault.RunnerUnavailable, "gone")
	}
	if s := summary(e, id); s.Jobs.Active != 1 || s.Workspace.Status != "unavailable" || s.Stale != nil {
		t.Errorf("without its Runner: %+v", s)
	}
}
