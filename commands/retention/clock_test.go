package retention_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"webcodex/commands/internal/calltest"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

// closedAt makes a Session that was begun and closed by a server whose clock said so.
func closedAt(e *calltest.Env, at time.Time) event.SessionID {
	e.T.Helper()
	id := event.NewSessionID()
	owner := calltest.Owner().Actor
	for _, list := range [][]event.Event{{event.SessionCreated{Nonce: event.NewNonce(), Authority: owner.Authority, Principal: owner.Principal,
		Project: calltest.Alpha, Mode: event.ModeNormal}, event.InstructionAccepted{Text: "do it", Continuation: "started", Mode: event.ModeNormal}},
		{event.SessionClosed{}}} {
		head, err := e.Log.Head(event.SessionAggregate(id))
		if err != nil {
			e.T.Fatal(err)
		}
		if _, err := e.Log.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: event.SessionAggregate(id), Expect: head,
			At: at, Actor: owner, Events: list}); err != nil {
			e.T.Fatal(err)
		}
	}
	return id
}

// given history that was closed while the clock was a year ahead, when the clock is right again,
// then the oldest that leave are those that the log has first, in memory and in the file, and
// what is closed now stays.
//
// Covers: SES-33
func TestAClockThatWasAheadDoesNotKeepHistory(t *testing.T) {
	for _, kept := range []bool{false, true} { // in memory, in the file
		e := calltest.New(t, nil)
		now := time.Now()
		var all []event.SessionID
		for range 3 {
			all = append(all, closedAt(e, now.AddDate(1, 0, 0)))
		}
		for range 3 {
			all = append(all, closedAt(e, now))
		}
		if kept {
			if err := e.Keeper.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		e.Limit = 3
		e.Reopen() // removes what is beyond it
		left := idsOfCores(listed(e, view.Closed))
		if !slices.Equal(sorted(left), sorted(all[3:])) || !slices.Equal(sessionIDs(e.Tombstones.All()), all[:3]) {
			t.Errorf("kept %v: %v are left of %v; removed %v", kept, left, all, sessionIDs(e.Tombstones.All()))
		}
	}
}

func idsOfCores(list []view.Core) (out []event.SessionID) {
	for _, c := range list {
		out = append(out, c.ID)
	}
	return out
}

func sorted(list []event.SessionID) []event.SessionID { return slices.Sorted(slices.Values(list)) }
