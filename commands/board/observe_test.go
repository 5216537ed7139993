package board

import (
	"testing"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

func all(page []*session.Message) int { return len(page) }

// Covers: MSG-13, MSG-15, MSG-18, MSG-20
func TestDecideObserve(t *testing.T) {
	b := given(posted(1, event.MessageRisk), posted(2, event.MessageNote), event.MessageResolved{Message: msg(1)}, posted(3, event.MessageNote)).Board
	var overflow []event.Event
	for n := range session.MaxMessages + 1 {
		overflow = append(overflow, posted(10+n, event.MessageNote))
	}
	full := given(overflow...).Board
	for name, tc := range map[string]struct {
		board session.Board
		after uint64
		limit int
		kind  fault.Kind
		ids   []event.MessageID
		next  uint64
		more  bool
		lost  bool
	}{
		"from the start":      {board: b, limit: 9, ids: []event.MessageID{msg(2), msg(1), msg(3)}, next: 4},
		"one change a time":   {board: b, after: 1, limit: 1, ids: []event.MessageID{msg(2)}, next: 2, more: true},
		"posted and resolved": {board: b, after: 2, limit: 9, ids: []event.MessageID{msg(1), msg(3)}, next: 4},
		"at the end":          {board: b, after: 4, limit: 9, next: 4},
		"from the future":     {board: b, after: 5, limit: 9, kind: fault.InvalidObservation},
		"before what has left": {board: full, after: 0, limit: 2, ids: []event.MessageID{msg(11), msg(12)}, next: 3,
			more: true, lost: true},
		"at what has left": {board: full, after: 1, limit: 1, ids: []event.MessageID{msg(11)}, next: 2, more: true},
	} {
		l, err := DecideObserve(tc.board, tc.after, tc.limit, all)
		var ids []event.MessageID
		for _, m := range l.Messages {
			ids = append(ids, m.ID)
		}
		if fault.KindOf(err) != tc.kind || len(ids) != len(tc.ids) || l.Next != tc.next || l.More != tc.more || l.Lost != tc.lost ||
			l.Changed() != (len(tc.ids) > 0 || tc.lost) {
			t.Errorf("%s: %v, %v, next %d, more %v, lost %v", name, err, ids, l.Next, l.More, l.Lost)
			continue
		}
		for i := range ids {
			if ids[i] != tc.ids[i] {
				t.Errorf("%s: %v, want %v", name, ids, tc.ids)
			}
		}
	}
}

// An observer that pages as it likes, while the board goes on between two pages, and never
// hears of lost history, knows each retained message as it is: nothing is skipped, and nothing
// that did not change comes twice.
//
// Covers: MSG-15, MSG-18, MSG-19, MSG-21
func TestObserverKnowsTheBoard(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := given()
		n, version := 0, uint64(1)
		apply := func(e event.Event) {
			version++
			v = v.Apply(version, "", event.Commit{Aggregate: event.SessionAggregate(sessionID), Version: version, At: at, Events: []event.Event{e}})
		}
		known, revs := map[event.MessageID]*session.Message{}, map[event.MessageID]uint64{}
		after, whole := uint64(0), true
		look := func(limit int) bool {
			l, err := DecideObserve(v.Board, after, limit, func(p []*session.Message) int { return 1 + (len(p)-1)/2 })
			if err != nil {
				rt.Fatal(err)
			}
			whole = whole && !l.Lost
			for _, m := range l.Messages {
				if revs[m.ID] == m.Rev {
					rt.Fatalf("%s came twice without a change", m.ID)
				}
				known[m.ID], revs[m.ID] = m, m.Rev
			}
			after = l.Next
			return l.More
		}
		posts := rapid.IntRange(0, 260).Draw(rt, "posts at first")
		for range posts {
			n++
			apply(posted(n, event.MessageTodo))
			if posts%3 == 0 {
				look(rapid.IntRange(1, 3).Draw(rt, "limit"))
			}
		}
		for range rapid.IntRange(0, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				n++
				apply(posted(n, event.MessageTodo))
			case 1:
				apply(event.MessageResolved{Message: msg(rapid.IntRange(1, max(n, 1)).Draw(rt, "which"))})
			case 2:
				n++
				apply(event.MessageCompleted{Todo: msg(rapid.IntRange(1, max(n-1, 1)).Draw(rt, "which")), Answer: msg(n), Completion: "c",
					Text: "a", Priority: event.PriorityNormal, Key: "k", Payload: "p"})
			default:
				look(rapid.IntRange(1, 5).Draw(rt, "limit"))
			}
		}
		for look(7) {
		}
		if !whole {
			return
		}
		for _, m := range v.Board.Messages() {
			if k := known[m.ID]; k == nil || k.Status != m.Status || k.ResolvedBy != m.ResolvedBy || k.Rev != m.Rev {
				rt.Fatalf("%s is known as %+v, and is %+v", m.ID, k, m)
			}
		}
	})
}
