package peer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/peer"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/window"
)

// Given two windows at one Project, when one of them is within ten minutes, then the other is
// told once, also over a restart; of another Project's or principal's window it is never told.
//
// Covers: WIN-07, WIN-08
func TestAWindowIsToldOfAPeerOnce(t *testing.T) {
	w := newWorld(t)
	if a := w.read(at(here), calltest.Alpha); a.Awareness != nil {
		t.Errorf("told of itself: %+v", a.Awareness)
	}
	w.read(from{who: calltest.Someone("b"), window: third}, calltest.Alpha)
	if a := w.read(at(there), calltest.Beta); a.Awareness != nil {
		t.Errorf("told over Projects or principals: %+v", a.Awareness)
	}
	if a := w.call(at(""), reads, obj{"project": calltest.Alpha.String()}); a.Awareness != nil {
		t.Errorf("told without a window: %+v", a.Awareness)
	}
	w.pass(9*time.Minute + 59*time.Second)
	a := w.read(at(there), calltest.Alpha)
	if a.Awareness == nil || len(a.Awareness.Peers) != 1 || a.Awareness.Peers[0].PeerID != peer.Name(calltest.Owner().Actor.Principal, here) {
		t.Fatalf("%+v", a.Awareness)
	}
	if a := w.read(at(there), calltest.Alpha); a.Awareness != nil {
		t.Errorf("told again: %+v", a.Awareness)
	}
	w.restart()
	w.read(at(here), calltest.Alpha)
	if a := w.read(at(there), calltest.Alpha); a.Awareness != nil {
		t.Errorf("told again after a restart: %+v", a.Awareness)
	}
	w.pass(window.MaxAge)
	w.read(at(here), calltest.Alpha)
	if a := w.read(at(there), calltest.Alpha); a.Awareness == nil {
		t.Error("the retained state has gone, and nobody is told")
	}
}

// Covers: WIN-07, WIN-09
func TestActivityIsRecentForTenMinutes(t *testing.T) {
	w := newWorld(t)
	w.read(at(here), calltest.Alpha)
	w.pass(10*time.Minute + time.Second)
	if a := w.read(at(there), calltest.Alpha); a.Awareness != nil {
		t.Errorf("%+v", a.Awareness)
	}
	w.call(at(third), looks, obj{"project": calltest.Alpha.String()}) // no work
	w.pass(11 * time.Minute)
	w.call(at(third), looks, obj{"project": calltest.Alpha.String()})
	if a := w.read(at(here), calltest.Alpha); a.Awareness != nil {
		t.Errorf("a look counts as work: %+v", a.Awareness)
	}
}

// A peer id is scoped to its principal, and reaches nobody by another one.
//
// Covers: WIN-04, WIN-19
func TestWithoutARouteThereIsNoPeer(t *testing.T) {
	w := newWorld(t)
	toHere, toThere := w.meet()
	if toHere == peer.Name(calltest.Someone("b").Actor.Principal, here) {
		t.Error("two principals share a peer id")
	}
	stranger := from{who: calltest.Someone("b"), window: here}
	for _, f := range []from{stranger, at(""), at(third)} {
		w.refused(f, postArgs(toThere, "x"), fault.UnknownPeer)
	}
	for _, id := range []event.PeerID{"", "wc_peer_", event.PeerID("wc_peer_" + strings.Repeat("0", 32)), toHere, peer.Name(calltest.Owner().Actor.Principal, third)} {
		w.refused(at(here), postArgs(id, "x"), fault.UnknownPeer)
	}
	w.pass(window.MaxAge)
	w.refused(at(here), postArgs(toThere, "x"), fault.UnknownPeer)
}

// Once they met, both may write, wherever they work; a message says nothing of where that is.
//
// Covers: WIN-10, WIN-11, WIN-13, WIN-14
func TestAMessageComesOnceAndWhereverThePeerWorks(t *testing.T) {
	w := newWorld(t)
	w.read(at(here), calltest.Alpha)
	toHere := w.read(at(there), calltest.Alpha).Awareness.Peers[0].PeerID // here was not told of there
	w.read(at(there), calltest.Beta)
	m := w.post(at(there), toHere, "look at main.go")
	w.restart()
	if a := w.read(at(there), calltest.Alpha); a.Inbox != nil {
		t.Errorf("the sender has it: %+v", a.Inbox)
	}
	if a := w.read(from{who: calltest.Someone("b"), window: here}, calltest.Alpha); a.Inbox != nil {
		t.Errorf("another principal has it: %+v", a.Inbox)
	}
	a := w.call(at(here), asks, obj{})
	if a.Inbox == nil || len(a.Inbox.Messages) != 1 || a.Inbox.Remaining != 0 || a.Inbox.Messages[0].MessageID != m.MessageID || a.Inbox.Messages[0].Projections != 1 {
		t.Fatalf("%+v", a.Inbox)
	}
	if b := w.call(at(here), asks, obj{}); b.Inbox != nil {
		t.Errorf("it came again: %+v", b.Inbox)
	}
	w.post(at(here), a.Inbox.Messages[0].PeerID, "seen") // the way back
	if b := w.call(at(there), asks, obj{}); !slices.Equal(texts(b.Inbox), []string{"seen"}) {
		t.Errorf("%+v", b.Inbox)
	}
	raw, _ := json.Marshal(a.Inbox.Messages[0])
	var members map[string]any
	_ = json.Unmarshal(raw, &members)
	for name := range members {
		if !slices.Contains([]string{"message_id", "peer_id", "created_at", "priority", "requires_ack", "message", "first_projected_at_ms",
			"last_projected_at_ms", "projection_count", "first_ack_observed_at_ms"}, name) {
			t.Errorf("a message tells %s", name)
		}
	}
}

// Whoever has left before the answer was not shown anything: what comes once waits for the next
// request. What the call established stands.
//
// Covers: WIN-08, WIN-14, WIN-20
func TestNothingIsShownToWhoHasLeft(t *testing.T) {
	w := newWorld(t)
	_, toThere := w.meet()
	w.post(at(here), toThere, "once")
	left := at(there)
	left.gone = true
	if a := w.read(left, calltest.Alpha); a.Inbox != nil {
		t.Errorf("%+v", a.Inbox)
	}
	if a := w.read(at(there), calltest.Alpha); !slices.Equal(texts(a.Inbox), []string{"once"}) || a.Inbox.Messages[0].Projections != 1 {
		t.Errorf("%+v", a.Inbox)
	}
	left.window = third
	id := w.work(left, calltest.Alpha)
	b := w.Windows.Book(calltest.Owner().Actor.Principal)
	if r := b.Related(third); len(r) != 1 || r[0].Session != id || b.Knows(third, here) {
		t.Errorf("%+v, %v", r, b.Routes)
	}
	if a := w.read(at(third), calltest.Alpha); a.Awareness == nil || len(a.Awareness.Peers) != 2 {
		t.Errorf("%+v", a.Awareness)
	}
}

// A message that asks for an ACK comes with each request that does not name it; the first ACK
// is kept, and remembers nothing for the next request.
//
// Covers: WIN-15, WIN-16, ACK-01, ACK-06, ACK-29
func TestAnAckHoldsForItsRequest(t *testing.T) {
	w := newWorld(t)
	_, toThere := w.meet()
	m := w.post(at(here), toThere, "1", "requires_ack", true).MessageID
	for n := 1; n < 3; n++ {
		if a := w.call(at(there), asks, obj{}); len(texts(a.Inbox)) != 1 || a.Inbox.Messages[0].Projections != n || a.Inbox.Messages[0].FirstAck != nil {
			t.Fatalf("%+v", a.Inbox)
		}
	}
	for range 2 {
		if a := w.call(at(there).ack(m, "wc_msg_x"), asks, obj{}); a.Inbox != nil {
			t.Errorf("%+v", a.Inbox)
		}
	}
	f := at(there)
	f.env.AckRef = string(m)
	a := w.call(f, asks, obj{})
	if len(texts(a.Inbox)) != 1 || a.Inbox.Messages[0].FirstAck == nil {
		t.Fatalf("%+v", a.Inbox)
	}
	acks := 0
	for _, e := range w.stored(calltest.Owner()) {
		if _, ok := e.(event.PeerAcknowledged); ok {
			acks++
		}
	}
	if acks != 1 {
		t.Errorf("%d ACKs are stored", acks)
	}
	b := w.Windows.Book(calltest.Owner().Actor.Principal)
	if got, _ := b.Find(m); got.Projections != 3 || got.FirstProjected == 0 || got.LastProjected < got.FirstProjected || got.FirstAck != *a.Inbox.Messages[0].FirstAck {
		t.Errorf("%+v", got)
	}
	id := w.work(at(there), calltest.Beta)
	w.Append(id, event.MessagePosted{Message: event.NewMessageID(), Kind: event.MessageNote, Text: "board", Priority: event.PriorityNormal, RequiresAck: true})
	v, _ := w.Store.Load(id)
	board := v.Board.Messages()[0].ID
	if a := w.call(at(there).recording(id).ack(m, board), reads, obj{"project": calltest.Beta.String()}); a.Inbox != nil || a.Attention == nil || a.Attention.Acknowledged != 1 {
		t.Errorf("%+v %+v", a.Inbox, a.Attention)
	}
	// A ref stands for messages of the board alone, also where both came in one answer.
	both := w.call(at(there).recording(id), reads, obj{"project": calltest.Beta.String()})
	if len(texts(both.Inbox)) != 1 || both.Attention == nil || len(both.Attention.Messages) != 1 {
		t.Fatalf("%+v %+v", both.Inbox, both.Attention)
	}
	f = at(there).recording(id)
	f.env.AckRef = both.Attention.AckRef
	if a := w.call(f, reads, obj{"project": calltest.Beta.String()}); len(texts(a.Inbox)) != 1 || a.Attention == nil || a.Attention.Acknowledged != 1 || len(a.Attention.Messages) != 0 {
		t.Errorf("%+v %+v", a.Inbox, a.Attention)
	}
}

// What answers tell of peers has these members and no others: nothing of a peer's work, and nothing
// of whether it is there.
//
// Covers: WIN-09, WIN-11
func TestWhatIsToldOfAPeer(t *testing.T) {
	told := map[string]string{}
	var walk func(r reflect.Type)
	walk = func(r reflect.Type) {
		switch r.Kind() {
		case reflect.Slice, reflect.Pointer:
			walk(r.Elem())
		case reflect.Struct:
			for i := range r.NumField() {
				name, _, _ := strings.Cut(r.Field(i).Tag.Get("json"), ",")
				told[name] = r.Name()
				walk(r.Field(i).Type)
			}
		}
	}
	for _, r := range []reflect.Type{reflect.TypeFor[peer.Awareness](), reflect.TypeFor[peer.Inbox]()} {
		walk(r)
	}
	want := []string{"created_at", "first_ack_observed_at_ms", "first_projected_at_ms", "last_projected_at_ms", "message", "message_id", "messages",
		"peer_id", "peers", "priority", "projection_count", "remaining", "requires_ack"}
	if got := slices.Sorted(maps.Keys(told)); !slices.Equal(got, want) {
		t.Errorf("%v", told)
	}
	walk(reflect.TypeFor[peer.Gap]())
	for name, of := range told {
		if regexp.MustCompile(`online|presen|typing|idle|away|active|alive|status|seen|last_active`).MatchString(name) {
			t.Errorf("%s.%s", of, name)
		}
	}
}

// A message of any priority may ask for an ACK.
//
// Covers: ACK-12, WIN-15
func TestAnyPeerMessageMayAskForAnAck(t *testing.T) {
	w := newWorld(t)
	for _, p := range []string{"low", "normal", "high"} {
		_, toThere := w.meet()
		m := w.post(at(here), toThere, p, "priority", p, "requires_ack", true).MessageID
		for range 2 {
			if a := w.call(at(there), asks, obj{}); !slices.Equal(texts(a.Inbox), []string{p}) || string(a.Inbox.Messages[0].Priority) != p {
				t.Errorf("%s: %+v", p, a.Inbox)
			}
		}
		if a := w.call(at(there).ack(m), asks, obj{}); a.Inbox != nil {
			t.Errorf("%s: %+v", p, a.Inbox)
		}
		w.pass(window.MaxAge) // it leaves, and the next one comes alone
	}
}

// Many messages come in bounded answers, each ordinary one exactly once, also where requests
// of the window come at once.
//
// Covers: WIN-14, WIN-18
func TestManyMessagesComeOnceEach(t *testing.T) {
	w := newWorld(t)
	_, toThere := w.meet()
	for i := range 6 {
		w.post(at(here), toThere, fmt.Sprintf("asks %d", i), "requires_ack", true)
	}
	const ordinary = 23
	for i := range ordinary {
		w.post(at(here), toThere, fmt.Sprintf("m %d", i))
	}
	w.post(at(here), toThere, strings.Repeat("漢", peer.MaxText))
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 4 {
				a := w.call(at(there), asks, obj{})
				if raw, _ := json.Marshal(a.Inbox); len(raw) > peer.MaxBytes+1024 || a.Inbox != nil && len(a.Inbox.Messages) > peer.MaxMessages {
					t.Errorf("%d bytes, %d messages", len(raw), len(a.Inbox.Messages))
				}
				mu.Lock()
				for _, text := range texts(a.Inbox) {
					seen[text]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	n := 0
	for text, times := range seen {
		if !strings.HasPrefix(text, "asks") {
			if n++; times != 1 {
				t.Errorf("%.10q came %d times", text, times)
			}
		}
	}
	if n != ordinary+1 {
		t.Errorf("%d of %d came", n, ordinary+1)
	}
}

// What is retained is bounded; what has left comes no more.
//
// Covers: WIN-18, WIN-15
func TestWhatHasLeftComesNoMore(t *testing.T) {
	w := newWorld(t)
	_, toThere := w.meet()
	w.post(at(here), toThere, "oldest", "requires_ack", true)
	if a := w.call(at(there), asks, obj{}); !slices.Equal(texts(a.Inbox), []string{"oldest"}) {
		t.Fatalf("%+v", a.Inbox)
	}
	var events []event.Event
	for range window.MaxMessages {
		events = append(events, event.PeerPosted{Message: event.NewMessageID(), From: there, To: here, Text: "x", Priority: event.PriorityNormal})
	}
	w.Commit(event.WindowAggregate(calltest.Owner().Actor.Principal), events...)
	if a := w.call(at(there), asks, obj{}); a.Inbox != nil {
		t.Errorf("%+v", a.Inbox)
	}
	toHere := peer.Name(calltest.Owner().Actor.Principal, here)
	w.post(at(there), toHere, "for a day", "requires_ack", true)
	w.pass(window.MaxAge)
	if a := w.call(at(here), asks, obj{}); a.Inbox != nil {
		t.Errorf("after a day: %+v", a.Inbox)
	}
}

// One key, one message, also over a restart and after the route has gone; the same key on a
// Session's board is another message.
//
// Covers: MSG-45
func TestADeliveryKeyPostsOnce(t *testing.T) {
	w := newWorld(t)
	_, toThere := w.meet()
	id := w.work(at(here), calltest.Alpha)
	first := w.post(at(here), toThere, "x", "delivery_key", "k")
	b := w.call(at(here), &board.PostMessage, obj{"session_id": id, "kind": "note", "message": "x", "delivery_key": "k"})
	w.restart()
	again := w.post(at(here), toThere, "x", "delivery_key", "k")
	if first.Replayed || !again.Replayed || again.MessageID != first.MessageID || b.MessageID == first.MessageID || b.Replayed {
		t.Errorf("%+v, %+v, %+v", first, again, b)
	}
	w.refused(at(here), postArgs(toThere, "y", "delivery_key", "k"), fault.IdempotencyConflict)
	w.refused(at(here), postArgs(toThere, "x", "delivery_key", "k", "requires_ack", true), fault.IdempotencyConflict)
	if other := w.post(at(there), peer.Name(calltest.Owner().Actor.Principal, here), "x", "delivery_key", "k"); other.Replayed {
		t.Error("windows share keys")
	}
	for _, e := range w.stored(calltest.Owner()) {
		if p, ok := e.(event.PeerPosted); ok && (len(p.Key) != 64 || len(p.Payload) != 64) {
			t.Errorf("%+v", p)
		}
	}
}

// Covers: MSG-45
func TestAPostIsWithinItsBounds(t *testing.T) {
	w := newWorld(t)
	_, toThere := w.meet()
	for _, c := range []struct {
		args obj
		kind fault.Kind
	}{
		{postArgs(toThere, ""), fault.InvalidMessage},
		{postArgs(toThere, " \n"), fault.InvalidMessage},
		{postArgs(toThere, strings.Repeat("漢", peer.MaxText+1)), fault.InvalidMessage},
		{postArgs(toThere, "x", "priority", "urgent"), fault.InvalidArguments},
		{postArgs(toThere, "x", "delivery_key", ""), fault.InvalidArguments},
		{postArgs(toThere, "x", "delivery_key", strings.Repeat("k", peer.MaxKey+1)), fault.InvalidArguments},
	} {
		w.refused(at(here), c.args, c.kind)
	}
	w.refused(from{who: calltest.Owner(call.ScopeCollaborate), window: here}, postArgs(toThere, "x"), fault.InsufficientScope)
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	w.post(at(here), toThere, "token "+secret)
	if a := w.call(at(there), asks, obj{}); len(texts(a.Inbox)) != 1 || strings.Contains(texts(a.Inbox)[0], secret) {
		t.Errorf("%+v", a.Inbox)
	}
}
