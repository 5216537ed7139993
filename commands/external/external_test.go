package external_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/call"
	"webcodex/commands/external"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	reports "webcodex/projections/external"
	view "webcodex/projections/session"
)

type args = map[string]any

func hex(n int) string { return fmt.Sprintf("%064x", n) }

func begin(e *calltest.Env) event.SessionID {
	return calltest.Must[session.StartOut](e, &session.StartSession, args{"project": calltest.Alpha.String()}).SessionID
}

// about is a whole report with changes; nil takes a member out.
func about(id event.SessionID, n int, change args) args {
	a := args{"project": calltest.Alpha.String(), "session_id": id, "adapter_id": hex(1), "event_id": hex(n), "tool": "acme.lint:v2", "status": "succeeded"}
	for k, v := range change {
		if a[k] = v; v == nil {
			delete(a, k)
		}
	}
	return a
}

func listed(e *calltest.Env, id event.SessionID, more args) external.ListOut {
	a := args{"project": calltest.Alpha.String(), "session_id": id}
	for k, v := range more {
		a[k] = v
	}
	return calltest.Must[external.ListOut](e, &external.ListObservations, a)
}

// given a Session, when adapters report about it, then the reports are listed by the server's
// time, never as complete, and the Session has no event more.
//
// Covers: EXT-01, EXT-03, EXT-04, EXT-07, EXT-08, EXT-12
func TestReportsStandBesideTheSession(t *testing.T) {
	e := calltest.New(t, nil)
	id := begin(e)
	before, err := e.Store.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	for i, status := range []string{"unknown", "failed", "succeeded"} {
		out := calltest.Must[external.RecordOut](e, &external.RecordObservation, about(id, 9-i, args{"status": status, "exit_code": -i}))
		if out.Replayed || out.Report.Status != status || *out.Report.ExitCode != int32(-i) || out.Provenance != "external_report" || out.Coverage.Complete {
			t.Errorf("%+v", out)
		}
	}
	for range 2 {
		page := listed(e, id, nil)
		if page.Total != 3 || page.Returned != 3 || page.Truncated || page.UnknownCount != 1 || page.Coverage.Complete || page.Provenance != "external_report" {
			t.Errorf("%+v", page)
		}
		for i := range page.Observations[1:] {
			if page.Observations[i].ReceivedAt < page.Observations[i+1].ReceivedAt {
				t.Errorf("%+v", page.Observations)
			}
		}
		one := listed(e, id, args{"limit": 1, "offset": 1})
		if one.Returned != 1 || !one.Truncated || *one.NextOffset != 2 || one.UnknownCount != 1 {
			t.Errorf("%+v", one)
		}
		after, err := e.Store.Load(id)
		if err != nil || after.Core.Observed != before.Core.Observed || after.Seq != before.Seq {
			t.Errorf("the Session moved: %d to %d", before.Seq, after.Seq)
		}
		e.Reopen()
	}
}

// Project and Session are both given, both authorised and of one another.
//
// Covers: EXT-01, EXT-02
func TestTheScopeOfAReport(t *testing.T) {
	e := calltest.New(t, nil)
	id := begin(e)
	for _, spec := range []*call.Spec{&external.RecordObservation, &external.ListObservations} {
		e.Refused(calltest.Owner(), spec, about(id, 1, args{"project": nil}), fault.InvalidArguments)
		e.Refused(calltest.Owner(), spec, about(id, 1, args{"session_id": nil}), fault.InvalidArguments)
		e.Refused(calltest.Owner(), spec, about(id, 1, args{"project": calltest.Beta.String()}), fault.SessionProjectMismatch)
		e.Refused(calltest.Owner(), spec, about(event.NewSessionID(), 1, nil), fault.UnknownSessionID)
		e.Refused(calltest.Someone("b"), spec, about(id, 1, nil), fault.SessionAuthorityDenied)
		e.Refused(calltest.Owner(call.ScopeProjectWrite, call.ScopeProjectRead), spec, about(id, 1, nil), fault.InsufficientScope)
	}
}

// A key stands for its first report for as long as that is kept: the same again is that one,
// in every life; another one is refused.
//
// Covers: EXT-05, EXT-06, EXT-11
func TestKeysAndShapes(t *testing.T) {
	e := calltest.New(t, nil)
	id := begin(e)
	first := calltest.Must[external.RecordOut](e, &external.RecordObservation, about(id, 1, nil))
	for range 2 {
		before := e.Seq()
		again := calltest.Must[external.RecordOut](e, &external.RecordObservation, about(id, 1, nil))
		if !again.Replayed || again.Report != first.Report || e.Seq() != before {
			t.Errorf("%+v", again)
		}
		for _, change := range []args{{"status": "failed"}, {"tool": "other"}, {"exit_code": 0}} {
			e.Refused(calltest.Owner(), &external.RecordObservation, about(id, 1, change), fault.IdempotencyConflict)
		}
		e.Reopen()
	}
	// In another Session the key is another one.
	if out := calltest.Must[external.RecordOut](e, &external.RecordObservation, about(begin(e), 1, args{"status": "failed"})); out.Replayed {
		t.Errorf("%+v", out)
	}
	for field, bad := range map[string][]any{
		"adapter_id": {strings.Repeat("A", 64), hex(1)[1:], hex(1) + "0", hex(1) + "\n", ""},
		"event_id":   {strings.Repeat("g", 64), hex(1)[1:], ""},
		"tool":       {"", strings.Repeat("t", 65), "a b", "é", "a\n", "ghp_0123456789abcdefghijABCDEFGHIJ012345"},
		"status":     {"", "passed", "Unknown"},
	} {
		for _, v := range bad {
			if f := e.Refused(calltest.Owner(), &external.RecordObservation, about(id, 2, args{field: v}), fault.InvalidArguments); f.Field != field {
				t.Errorf("%s %q: field %q", field, v, f.Field)
			}
		}
	}
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": id})
	e.Refused(calltest.Owner(), &external.RecordObservation, about(id, 3, nil), fault.SessionClosed)
	if page := listed(e, id, nil); page.Total != 1 {
		t.Errorf("a Closed Session shows %+v", page)
	}
}

// What is full stays as it is.
//
// Covers: EXT-09
func TestCapacity(t *testing.T) {
	active := view.Core{ID: event.NewSessionID(), Lifecycle: view.Active}
	e := event.ObservationRecorded{Session: active.ID, Payload: hex(1)}
	for _, tc := range []struct {
		st     reports.Standing
		reason string
	}{
		{reports.Standing{Of: reports.MaxPerSession - 1, All: reports.MaxReports - 1}, ""},
		{reports.Standing{Of: reports.MaxPerSession, All: reports.MaxReports - 1}, "session_capacity"},
		{reports.Standing{Of: 0, All: reports.MaxReports}, "total_capacity"},
	} {
		_, events, err := external.Decide(active, tc.st, e)
		var f *fault.Error
		if errors.As(err, &f); tc.reason == "" && (err != nil || len(events) != 1) || tc.reason != "" && (f == nil || f.Kind != fault.CapacityReached || f.Reason != tc.reason) {
			t.Errorf("%+v: %v %v", tc.st, events, err)
		}
		// What is there already is given in a full record too.
		tc.st.Same = &reports.Report{Payload: hex(1)}
		if first, events, err := external.Decide(active, tc.st, e); first == nil || len(events) != 0 || err != nil {
			t.Errorf("%+v: %v", tc.st, err)
		}
	}
	if reports.MaxPerSession != 256 || reports.MaxReports != 65_536 {
		t.Error("other bounds than those promised")
	}
}

// Many adapters report the same and other things at once: each key is recorded once.
//
// Covers: EXT-05, EXT-06
func TestReportsAtOnce(t *testing.T) {
	e := calltest.New(t, nil)
	id := begin(e)
	var mu sync.Mutex
	var wg sync.WaitGroup
	first := map[int]int{}
	for worker := range 6 {
		wg.Go(func() {
			for n := range 5 {
				status := reports.Statuses()[worker%2]
				resp, err := e.Call(&external.RecordObservation, about(id, n, args{"status": status}))
				mu.Lock()
				switch {
				case err == nil && strings.Contains(string(resp.Output), `"replayed":false`):
					first[n]++
				case err != nil && fault.KindOf(err) != fault.IdempotencyConflict && fault.KindOf(err) != fault.Conflict:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if d := cmp.Diff(map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1}, first); d != "" {
		t.Error(d)
	}
	if page := listed(e, id, nil); page.Total != 5 {
		t.Errorf("%+v", page)
	}
}

// The reports leave with their Session, from the fold and from what the log has to keep.
//
// Covers: EXT-09
func TestReportsLeaveWithTheirSession(t *testing.T) {
	e := calltest.New(t, nil)
	e.Limit = 1
	e.Reopen()
	a, b := begin(e), begin(e)
	for n, id := range []event.SessionID{a, b} {
		calltest.Must[external.RecordOut](e, &external.RecordObservation, about(id, n, nil))
	}
	for range 2 {
		for _, id := range []event.SessionID{a, b} {
			if c, _ := e.Store.Core(id); c.Lifecycle == view.Active {
				calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": id})
			}
		}
		if len(e.External.About(a)) != 0 || len(e.External.About(b)) != 1 || e.External.Total() != 1 {
			t.Errorf("%d and %d reports", len(e.External.About(a)), len(e.External.About(b)))
		}
		if err := e.Keeper.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		rows, err := e.Keeper.QueryContext(context.Background(), `SELECT aggregate FROM state_head WHERE aggregate LIKE 'external/%' AND living > 0`)
		if err != nil {
			t.Fatal(err)
		}
		var living []string
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			living = append(living, name)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{event.ExternalAggregate(b).String()}, living); d != "" {
			t.Errorf("the log is held by %s", d)
		}
		// A start that folds the log again ends there too.
		if err := e.Log.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(e.Dir, "state.db")); err != nil {
			t.Fatal(err)
		}
		e = calltest.At(t, e.Dir, nil)
	}
}
