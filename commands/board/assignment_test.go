package board

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares v's JSON with a file under testdata. A changed file is a changed contract.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s differs; run with -update and look at the difference:\n%s", name, b.String())
	}
}

// The wire form of an assignment, its fence included: a fence of yesterday holds today.
//
// Covers: MSG-30
func TestAssignmentIsGolden(t *testing.T) {
	v := given(posted(1, event.MessageTodo), replied(2, 1), replied(3, 1))
	a := assignment(t, v, 1)
	if !regexp.MustCompile(FenceForm).MatchString(*a.Fence) {
		t.Errorf("%q has not the form of a fence", *a.Fence)
	}
	golden(t, "assignment.json", map[string]Assignment{"open": a, "resolved": assignment(t, given(posted(1, event.MessageTodo),
		completed(1, 2)), 1)})
}

// The fence is as good as the assignment: each change that means something makes another one,
// everything else leaves it.
//
// Covers: MSG-32, MSG-33, MSG-48
func TestFenceFollowsTheAssignment(t *testing.T) {
	base := []event.Event{posted(1, event.MessageTodo), replied(2, 1), posted(3, event.MessageTodo)}
	fence := func(events ...event.Event) string {
		t.Helper()
		return *assignment(t, given(append(append([]event.Event{}, base...), events...)...), 1).Fence
	}
	was := fence()
	for name, events := range map[string][]event.Event{
		"other posts":          {posted(4, event.MessageNote), posted(5, event.MessageTodo)},
		"a reply to a reply":   {replied(4, 2)},
		"a reply to another":   {replied(4, 3)},
		"an ACK of the todo":   {event.MessagesAcknowledged{Messages: []event.MessageID{msg(1), msg(2)}}},
		"calls":                {event.ToolCallStarted{Call: "c", Role: event.RoleBusiness, Tool: "x"}},
		"another is completed": {completed(3, 4)},
		"new defaults":         {event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: "a"}}},
	} {
		if fence(events...) != was {
			t.Errorf("%s: the fence is another one", name)
		}
	}
	superseding := posted(4, event.MessageTodo)
	superseding.Supersedes = msg(1)
	for name, events := range map[string][]event.Event{
		"a new reply":        {replied(4, 1)},
		"a resolved reply":   {event.MessageResolved{Message: msg(2)}},
		"the todo is passed": {superseding},
	} {
		if fence(events...) == was {
			t.Errorf("%s: the fence is the same", name)
		}
	}

	v := given(base...)
	todo, _ := v.Board.Find(msg(1))
	other, _ := v.Board.Find(msg(3))
	mine := fences(t, "s")
	theirs, later, foreign := mine, mine, fences(t, "another data directory")
	theirs.principal, later.epoch = "q", "f"
	elsewhere, reborn := v.Core, v.Core
	elsewhere.ID, reborn.Nonce = "wc_sess_"+event.SessionID(strings.Repeat("1", 32)), "m"
	for name, f := range map[string]*string{
		"another todo":           mine.assign(v.Core, v.Board, other).Fence,
		"another principal":      theirs.assign(v.Core, v.Board, todo).Fence,
		"another history":        later.assign(v.Core, v.Board, todo).Fence,
		"another key":            foreign.assign(v.Core, v.Board, todo).Fence,
		"another Session":        mine.assign(elsewhere, v.Board, todo).Fence,
		"another incarnation":    mine.assign(reborn, v.Board, todo).Fence,
		"a fence in other case":  ptr(strings.ToUpper(was)),
		"a fence that is longer": ptr(was + "A"),
		"a fence that is cut":    ptr(was[:len(was)-1]),
	} {
		if *f == was {
			t.Errorf("%s has the same fence", name)
		}
		_, events, err := DecideComplete(v.Core, v.Board, Complete{Todo: msg(1), Key: "k", Fence: *f}, func(m *session.Message) Assignment {
			return mine.assign(v.Core, v.Board, m)
		})
		if events != nil || fault.KindOf(err) != fault.FenceStale {
			t.Errorf("%s completes: %v, %v", name, events, err)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// What is not whole, not open or no todo is shown, without a fence.
//
// Covers: MSG-30, MSG-35, MSG-47
func TestAssignmentThatCannotBeCompleted(t *testing.T) {
	todo := posted(1, event.MessageTodo)
	replies := func(n, chars int) []event.Event {
		events := []event.Event{todo}
		for i := range n {
			r := replied(10+i, 1)
			r.Text = strings.Repeat("x", chars)
			events = append(events, r)
		}
		return events
	}
	for name, tc := range map[string]struct {
		given    []event.Event
		total    int
		returned int
		reason   string
	}{
		"50 replies":       {given: replies(MaxReplies, 10), total: 50, returned: 50},
		"51 replies":       {given: replies(MaxReplies+1, 10), total: 51, returned: 50, reason: reasonMany},
		"60 KB of replies": {given: replies(8, 7500), total: 8, returned: 8},
		"too large":        {given: replies(9, 7500), total: 9, returned: 8, reason: reasonLarge},
		"no todo":          {given: []event.Event{posted(1, event.MessageQuestion), replied(2, 1)}, total: 1, returned: 1, reason: reasonNoTodo},
		"resolved":         {given: []event.Event{todo, event.MessageResolved{Message: msg(1)}}, reason: reasonResolved},
		"completed":        {given: []event.Event{todo, completed(1, 2)}, total: 1, returned: 1, reason: reasonResolved},
		"closed":           {given: []event.Event{todo, event.SessionClosed{}}, reason: reasonClosed},
	} {
		a := assignment(t, given(tc.given...), 1)
		if a.RepliesTotal != tc.total || len(a.Replies) != tc.returned || a.ReasonCode != tc.reason || a.Completable != (tc.reason == "") ||
			(a.Fence != nil) != a.Completable || a.Todo.MessageID != msg(1) || a.Replies == nil {
			t.Errorf("%s: %d of %d replies, completable %v, %q, fence %v", name, len(a.Replies), a.RepliesTotal, a.Completable, a.ReasonCode, a.Fence)
		}
		if raw, err := json.Marshal(a); err != nil || len(raw) > MaxReplyBytes+4096 {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
	}
}

// A reply that retention took makes the rest prove nothing. Oldest-first retention takes a todo
// before its replies, so no log of ours leads here; a fence must not rest on that.
//
// Covers: MSG-35
func TestAssignmentWithALostReply(t *testing.T) {
	v := given(posted(1, event.MessageTodo), replied(2, 1))
	fence := *assignment(t, v, 1).Fence
	m, _ := v.Board.Find(msg(1))
	lost := *m
	lost.RepliesLost = true
	a := fences(t, "s").assign(v.Core, v.Board, &lost)
	if a.Completable || a.Fence != nil || a.ReasonCode != reasonLost || a.takes(fence) {
		t.Errorf("%+v", a)
	}
}
