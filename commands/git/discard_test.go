package git_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/git"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// discarding scripts the Runner's answer to a discard and its preview.
func discarding(e *calltest.Env, out wire.DiscardOut, f *fault.Error) {
	e.Fleet.OnAsk = func(op wire.Op, _ json.RawMessage) (any, error) { return out, nil }
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		body, _ := json.Marshal(out)
		return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Body: body, Fault: f}}, nil
	}
}

// A discard leaves what it took away; its dry run, a refusal of the Runner, and what is wrong by
// itself change nothing.
//
// Covers: EVT-21
func TestDiscard(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	a := func(extra args) args {
		out := args{"project": alpha, "session_id": id}
		for k, v := range extra {
			out[k] = v
		}
		return out
	}
	gone := wire.DiscardOut{Files: []wire.DiscardFile{{Path: "a"}}, Count: 1, Digest: strings.Repeat("0", 64), Discarded: []string{"a"}}
	discarding(e, gone, nil)
	if out := calltest.Must[git.DiscardOut](e, &git.Discard, a(args{"paths": []string{"a"}})); out.DryRun || !slices.Equal(out.Discarded, []string{"a"}) {
		t.Errorf("%+v", out)
	}
	if out := calltest.Must[git.DiscardOut](e, &git.Discard, a(args{"dry_run": true, "include_ignored": true})); !out.DryRun {
		t.Errorf("%+v", out)
	}
	discarding(e, wire.DiscardOut{}, fault.New(fault.EditConflict, "others").WithField("expected_digest").WithReason("digest_mismatch"))
	if _, err := e.Call(&git.Discard, a(args{"expected_digest": strings.Repeat("0", 64)})); fault.KindOf(err) != fault.EditConflict {
		t.Error(err)
	}
	half := fault.New(fault.TransactionFailed, "half-way").With("changed_paths", []string{"b"})
	half.StateChanged = true
	discarding(e, wire.DiscardOut{}, half)
	if _, err := e.Call(&git.Discard, a(args{"paths": []string{"b"}})); !fault.As(err).StateChanged {
		t.Error(err)
	}
	done := finishes(e, id)
	if len(done) != 4 {
		t.Fatalf("%d pairs", len(done))
	}
	for i, want := range []struct {
		status  string
		changed []string
	}{{"succeeded", []string{"a"}}, {"succeeded", nil}, {"failed", nil}, {"failed", []string{"b"}}} {
		if f := done[i]; f.Status != want.status || !slices.Equal(f.Changed, want.changed) || f.Effect.StateChanged != (want.changed != nil) {
			t.Errorf("%d: %+v", i, f)
		}
	}
	starts := len(e.Fleet.Starts())
	for _, bad := range []args{{"paths": []string{"/a"}}, {"paths": []string{"../a"}}, {"paths": []string{".git/x"}}, {"paths": []string{"a", "a"}},
		{"expected_digest": "x"}, {"paths": slices.Repeat([]string{"a"}, git.MaxDiscardPaths+1)}} {
		if _, err := e.Call(&git.Discard, a(bad)); err == nil {
			t.Errorf("%v was not refused", bad)
		}
	}
	if len(finishes(e, id)) != 4 || len(e.Fleet.Starts()) != starts {
		t.Error("something was recorded or started")
	}
}

// The two summaries are reads that any Session may make; bounds are clamped and told.
func TestReviewAndHygieneAreReads(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, args{"session_mode": "read_only"})
	var bodies []string
	e.Fleet.OnAsk = func(_ wire.Op, body json.RawMessage) (any, error) {
		bodies = append(bodies, string(body))
		return struct{}{}, nil
	}
	for _, n := range []int{0, 200, 201} {
		out := calltest.Must[git.HygieneOut](e, &git.Hygiene, args{"project": alpha, "session_id": id, "max_findings": n})
		if want := map[int]int{0: 50, 200: 200, 201: 200}[n]; out.MaxFindings != want || !out.GitAvailable {
			t.Errorf("%d: %+v", n, out)
		}
	}
	calltest.Must[wire.GitReviewOut](e, &git.ReviewSummary, args{"project": alpha, "session_id": id})
	if want := []string{`{"max_findings":50}`, `{"max_findings":200}`, `{"max_findings":200}`, `{}`}; !slices.Equal(bodies, want) {
		t.Errorf("%q", bodies)
	}
	for _, f := range finishes(e, id) {
		if f.Status != event.StatusSucceeded || f.Effect.StateChanged {
			t.Errorf("%+v", f)
		}
	}
	for _, spec := range []*call.Spec{&git.Hygiene, &git.ReviewSummary} {
		e.Refused(calltest.Owner(call.ScopeProjectRead), spec, args{"project": alpha}, fault.InsufficientScope)
	}
	e.Refused(calltest.Owner(call.ScopeProjectWrite), &git.Discard, args{"project": alpha}, fault.InsufficientScope)
}
