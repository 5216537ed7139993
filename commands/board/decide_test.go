package board

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/token"
	"webcodex/projections/session"
)

var (
	sessionID = event.SessionID("wc_sess_" + strings.Repeat("0", 32))
	at        = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func msg(n int) event.MessageID {
	return event.MessageID(fmt.Sprintf("%s%032x", event.MessagePrefix, n))
}

func posted(n int, kind event.MessageKind) event.MessagePosted {
	return event.MessagePosted{Message: msg(n), Kind: kind, Text: "t", Priority: event.PriorityNormal}
}

func replied(n, to int) event.MessagePosted {
	p := posted(n, event.MessageNote)
	p.ReplyTo = msg(to)
	return p
}

func completed(todo, answer int) event.MessageCompleted {
	return event.MessageCompleted{Todo: msg(todo), Answer: msg(answer), Completion: "wc_done_1", Text: "a", Priority: event.PriorityNormal,
		Key: "key", Payload: "payload"}
}

// given folds events, one commit each, into what a decision sees.
func given(events ...event.Event) session.View {
	var v session.View
	events = append([]event.Event{event.SessionCreated{Nonce: "n", Mode: event.ModeNormal}}, events...)
	for i, e := range events {
		v = v.Apply(uint64(i+1), "", event.Commit{Aggregate: event.SessionAggregate(sessionID), Version: uint64(i + 1),
			At: at.Add(time.Duration(i) * time.Second), Events: []event.Event{e}})
	}
	return v
}

func fences(t testing.TB, secret string) fencing {
	t.Helper()
	k, err := token.New([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return fencing{keys: k, principal: "p", epoch: "e"}
}

func assignment(t testing.TB, v session.View, n int) Assignment {
	t.Helper()
	m, ok := v.Board.Find(msg(n))
	if !ok {
		t.Fatalf("message %d is not there", n)
	}
	return fences(t, "s").assign(v.Core, v.Board, m)
}

// Covers: MSG-08, MSG-09, MSG-27, MSG-28, MSG-29, MSG-50
func TestDecidePost(t *testing.T) {
	keyed := posted(1, event.MessageNote)
	keyed.Key, keyed.Payload = "k", "p"
	superseding := posted(2, event.MessageDecision)
	superseding.Supersedes = msg(1)
	var overflow []event.Event
	for n := range session.MaxMessages {
		overflow = append(overflow, posted(10+n, event.MessageNote))
	}
	post := Post{ID: msg(9), Kind: event.MessageNote, Text: "t", Priority: event.PriorityNormal}
	with := func(change func(*Post)) Post {
		p := post
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		given  []event.Event
		when   Post
		first  event.MessageID
		field  string
		reason string
		kind   fault.Kind
		then   *event.MessagePosted // nil: nothing is written
	}{
		"plain": {when: post, then: &event.MessagePosted{Message: msg(9), Kind: event.MessageNote, Text: "t", Priority: event.PriorityNormal}},
		"everything": {given: []event.Event{posted(1, event.MessageNote)},
			when: Post{ID: msg(9), Kind: event.MessageNote, Text: "t", Tags: []string{"a"}, Priority: event.PriorityHigh, ReplyTo: msg(1),
				Supersedes: msg(1), RequiresAck: true, Author: "wc_sess_a", Key: "k", Payload: "p"},
			then: &event.MessagePosted{Message: msg(9), Kind: event.MessageNote, Text: "t", Tags: []string{"a"}, Priority: event.PriorityHigh, ReplyTo: msg(1),
				Supersedes: msg(1), RequiresAck: true, Author: "wc_sess_a", Key: "k", Payload: "p"}},
		"parent unknown": {when: with(func(p *Post) { p.ReplyTo = msg(1) }), kind: fault.UnknownMessage, field: "reply_to"},
		"parent evicted": {given: append([]event.Event{posted(1, event.MessageNote)}, overflow...),
			when: with(func(p *Post) { p.ReplyTo = msg(1) }), kind: fault.UnknownMessage, field: "reply_to"},
		"superseded unknown": {when: with(func(p *Post) { p.Supersedes = msg(1) }), kind: fault.UnknownMessage, field: "supersedes"},
		"superseded of another kind": {given: []event.Event{posted(1, event.MessageRisk)},
			when: with(func(p *Post) { p.Supersedes = msg(1) }), kind: fault.InvalidMessage, field: "supersedes", reason: "other_kind"},
		"superseded twice": {given: []event.Event{posted(1, event.MessageDecision), superseding},
			when: with(func(p *Post) { p.Kind, p.Supersedes = event.MessageDecision, msg(1) }), kind: fault.InvalidMessage, field: "supersedes", reason: "superseded"},
		"key again":                   {given: []event.Event{keyed}, when: with(func(p *Post) { p.Key, p.Payload = "k", "p" }), first: msg(1)},
		"key again, its parent gone":  {given: []event.Event{keyed}, when: with(func(p *Post) { p.Key, p.Payload, p.ReplyTo = "k", "p", msg(7) }), first: msg(1)},
		"key again, another message":  {given: []event.Event{keyed}, when: with(func(p *Post) { p.Key, p.Payload = "k", "q" }), kind: fault.IdempotencyConflict, field: "delivery_key"},
		"key of an evicted message":   {given: append([]event.Event{keyed}, overflow...), when: with(func(p *Post) { p.Key, p.Payload = "k", "q" }), then: &event.MessagePosted{Message: msg(9), Kind: event.MessageNote, Text: "t", Priority: event.PriorityNormal, Key: "k", Payload: "q"}},
		"closed":                      {given: []event.Event{event.SessionClosed{}}, when: post, kind: fault.SessionClosed},
		"closed, key again":           {given: []event.Event{keyed, event.SessionClosed{}}, when: with(func(p *Post) { p.Key, p.Payload = "k", "p" }), kind: fault.SessionClosed},
		"closed, key again, conflict": {given: []event.Event{keyed, event.SessionClosed{}}, when: with(func(p *Post) { p.Key, p.Payload = "k", "q" }), kind: fault.SessionClosed},
	} {
		t.Run(name, func(t *testing.T) {
			v := given(tc.given...)
			first, events, err := DecidePost(v.Core, v.Board, tc.when)
			refused(t, err, tc.kind, tc.field, tc.reason)
			if got := idOf(first); got != tc.first {
				t.Errorf("the first one is %q, want %q", got, tc.first)
			}
			var want []event.Event
			if tc.then != nil {
				want = []event.Event{*tc.then}
			}
			if d := cmp.Diff(want, events); d != "" {
				t.Error(d)
			}
		})
	}
}

// Covers: MSG-06, MSG-09, MSG-39
func TestDecideResolve(t *testing.T) {
	done, other := "done", "other"
	resolved := event.MessageResolved{Message: msg(1), Resolution: done}
	for name, tc := range map[string]struct {
		given []event.Event
		when  *string
		kind  fault.Kind
		then  []event.Event
	}{
		"open":             {given: []event.Event{posted(1, event.MessageRisk)}, when: &done, then: []event.Event{resolved}},
		"open, no text":    {given: []event.Event{posted(1, event.MessageRisk)}, then: []event.Event{event.MessageResolved{Message: msg(1)}}},
		"the same again":   {given: []event.Event{posted(1, event.MessageRisk), resolved}, when: &done},
		"again, no text":   {given: []event.Event{posted(1, event.MessageRisk), resolved}},
		"again, otherwise": {given: []event.Event{posted(1, event.MessageRisk), resolved}, when: &other, then: []event.Event{event.MessageResolved{Message: msg(1), Resolution: other}}},
		"a completed todo": {given: []event.Event{posted(1, event.MessageTodo), completed(1, 2)}},
		"unknown":          {when: &done, kind: fault.UnknownMessage},
		"closed":           {given: []event.Event{posted(1, event.MessageRisk), event.SessionClosed{}}, when: &done, kind: fault.SessionClosed},
	} {
		t.Run(name, func(t *testing.T) {
			v := given(tc.given...)
			events, err := DecideResolve(v.Core, v.Board, msg(1), tc.when)
			refused(t, err, tc.kind, "", "")
			if d := cmp.Diff(tc.then, events); d != "" {
				t.Error(d)
			}
		})
	}
}

// Covers: MSG-32, MSG-35, MSG-36, MSG-37, MSG-38, MSG-39, MSG-50
func TestDecideComplete(t *testing.T) {
	todo := posted(1, event.MessageTodo)
	seen := given(todo)
	fence := *assignment(t, seen, 1).Fence
	complete := Complete{Todo: msg(1), Answer: msg(9), Completion: "wc_done_9", Text: "a", Tags: []string{"x"}, Priority: event.PriorityLow,
		Author: "wc_sess_a", Key: "key", Payload: "payload", Fence: fence}
	with := func(change func(*Complete)) Complete {
		c := complete
		change(&c)
		return c
	}
	var overflow []event.Event
	for n := range session.MaxMessages {
		overflow = append(overflow, posted(10+n, event.MessageNote))
	}
	ok := []event.Event{event.MessageCompleted{Todo: msg(1), Answer: msg(9), Completion: "wc_done_9", Text: "a", Tags: []string{"x"},
		Priority: event.PriorityLow, Author: "wc_sess_a", Key: "key", Payload: "payload"}}
	for name, tc := range map[string]struct {
		given []event.Event
		when  Complete
		first event.MessageID
		kind  fault.Kind
		then  []event.Event
	}{
		"as read":                        {given: []event.Event{todo}, when: complete, then: ok},
		"others talk":                    {given: []event.Event{todo, posted(2, event.MessageNote), replied(3, 2)}, when: complete, then: ok},
		"acknowledged":                   {given: []event.Event{todo, event.MessagesAcknowledged{Messages: []event.MessageID{msg(1)}}}, when: complete, then: ok},
		"a reply came":                   {given: []event.Event{todo, replied(2, 1)}, when: complete, kind: fault.FenceStale},
		"another fence":                  {given: []event.Event{todo}, when: with(func(c *Complete) { c.Fence = fencePrefix + strings.Repeat("A", 43) }), kind: fault.FenceStale},
		"no fence":                       {given: []event.Event{todo}, when: with(func(c *Complete) { c.Fence = "" }), kind: fault.FenceStale},
		"resolved meanwhile":             {given: []event.Event{todo, event.MessageResolved{Message: msg(1)}}, when: complete, kind: fault.AlreadyCompleted},
		"completed under another key":    {given: []event.Event{todo, completed(1, 2)}, when: with(func(c *Complete) { c.Key = "other" }), kind: fault.AlreadyCompleted},
		"the same again":                 {given: []event.Event{todo, completed(1, 2)}, when: complete, first: msg(1)},
		"the same again, any fence":      {given: []event.Event{todo, completed(1, 2)}, when: with(func(c *Complete) { c.Fence = "x" }), first: msg(1)},
		"the same key, another answer":   {given: []event.Event{todo, completed(1, 2)}, when: with(func(c *Complete) { c.Payload = "other" }), kind: fault.IdempotencyConflict},
		"the same key, another todo":     {given: []event.Event{todo, posted(3, event.MessageTodo), completed(1, 2)}, when: with(func(c *Complete) { c.Todo = msg(3) }), kind: fault.IdempotencyConflict},
		"no todo":                        {given: []event.Event{posted(1, event.MessageQuestion)}, when: complete, kind: fault.NotTodo},
		"unknown":                        {when: complete, kind: fault.UnknownMessage},
		"evicted":                        {given: append([]event.Event{todo}, overflow...), when: complete, kind: fault.UnknownMessage},
		"evicted after it was completed": {given: append([]event.Event{todo, completed(1, 2)}, overflow...), when: complete, kind: fault.UnknownMessage},
		"closed":                         {given: []event.Event{todo, event.SessionClosed{}}, when: complete, kind: fault.SessionClosed},
		"closed, the same again":         {given: []event.Event{todo, completed(1, 2), event.SessionClosed{}}, when: complete, kind: fault.SessionClosed},
	} {
		t.Run(name, func(t *testing.T) {
			v := given(tc.given...)
			first, events, err := DecideComplete(v.Core, v.Board, tc.when, func(m *session.Message) Assignment {
				return fences(t, "s").assign(v.Core, v.Board, m)
			})
			refused(t, err, tc.kind, "", "")
			if got := idOf(first); got != tc.first {
				t.Errorf("the first one is %q, want %q", got, tc.first)
			}
			if d := cmp.Diff(tc.then, events); d != "" {
				t.Error(d)
			}
		})
	}
}

// A stale fence shows the assignment as it is, with a fence exactly where it can be proven.
//
// Covers: MSG-34, MSG-35
func TestStaleFenceCarriesTheAssignment(t *testing.T) {
	todo := posted(1, event.MessageTodo)
	var many []event.Event
	for n := range MaxReplies + 1 {
		many = append(many, replied(10+n, 1))
	}
	for name, tc := range map[string]struct {
		given  []event.Event
		reason string
	}{
		"a reply":          {given: []event.Event{todo, replied(2, 1)}},
		"too many replies": {given: append([]event.Event{todo}, many...), reason: reasonMany},
	} {
		t.Run(name, func(t *testing.T) {
			v := given(tc.given...)
			now := func(m *session.Message) Assignment { return fences(t, "s").assign(v.Core, v.Board, m) }
			_, events, err := DecideComplete(v.Core, v.Board, Complete{Todo: msg(1), Key: "k", Fence: "x"}, now)
			f := fault.As(err)
			if events != nil || f.Kind != fault.FenceStale || f.StateChanged || f.Recovery != fault.ReRead || f.Reason != tc.reason {
				t.Fatalf("%v, %+v", events, f)
			}
			a := f.Details["assignment"].(Assignment)
			if (a.Fence != nil) != (tc.reason == "") || a.Completable != (tc.reason == "") || a.ReasonCode != tc.reason {
				t.Fatalf("the assignment: %+v", a)
			}
			if a.Fence == nil {
				return
			}
			if _, events, err = DecideComplete(v.Core, v.Board, Complete{Todo: msg(1), Key: "k", Fence: *a.Fence}, now); err != nil || len(events) != 1 {
				t.Errorf("with the fresh fence: %v, %v", events, err)
			}
		})
	}
}

func refused(t *testing.T, err error, kind fault.Kind, field, reason string) {
	t.Helper()
	if got := fault.KindOf(err); got != kind {
		t.Fatalf("kind %q, want %q (%v)", got, kind, err)
	}
	if err == nil {
		return
	}
	f := fault.As(err)
	if field != "" && f.Field != field || reason != "" && f.Reason != reason || f.StateChanged || f.Next == "" {
		t.Errorf("%+v", f)
	}
}

func idOf(m *session.Message) event.MessageID {
	if m == nil {
		return ""
	}
	return m.ID
}
