package attention

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/internal/token"
	"webcodex/projections/session"
)

// What was acknowledged before plays no part in what is shown, what is counted, and what a ref
// stands for: boards that differ in nothing but their stored ACKs give the same bytes, and what
// is shown of a message has no place for one.
//
// Covers: ACK-15
func TestStoredAcksDecideNothing(t *testing.T) {
	keys, err := token.New([]byte("of a test"))
	if err != nil {
		t.Fatal(err)
	}
	core := session.Core{ID: event.NewSessionID(), Nonce: event.NewNonce()}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_700_000_000, 0)
		plain, acked := session.Board{}, session.Board{}
		put := func(e event.Event) {
			c := event.Commit{At: now, Events: []event.Event{e}}
			plain, acked = plain.Apply(c), acked.Apply(c)
		}
		given := map[event.MessageID]bool{}
		for i := range rapid.IntRange(1, 30).Draw(t, "messages") {
			m := event.MessagePosted{Message: event.NewMessageID(), Kind: event.MessageNote, Priority: rapid.SampledFrom([]event.Priority{event.PriorityLow, event.PriorityNormal, event.PriorityHigh}).Draw(t, "priority"),
				Text: strings.Repeat("x", rapid.IntRange(1, session.MaxMessageChars).Draw(t, "chars")), RequiresAck: rapid.Bool().Draw(t, "asks")}
			put(m)
			given[m.Message] = rapid.Bool().Draw(t, "given")
			if rapid.IntRange(0, 9).Draw(t, "resolved") == 0 {
				put(event.MessageResolved{Message: m.Message})
			}
			if rapid.Bool().Draw(t, "acked before") {
				acked = acked.Apply(event.Commit{At: now.Add(time.Duration(i) * time.Hour), Events: []event.Event{event.MessagesAcknowledged{Messages: []event.MessageID{m.Message}}}})
				if x, _ := acked.Find(m.Message); m.RequiresAck && x.Status == session.MessageOpen && x.Acked.IsZero() {
					t.Fatal("the ACK is not at rest")
				}
			}
		}
		show := func(b session.Board) string {
			members := pending(b)
			s := pick(members, given)
			ref := makeRef(keys, "p", core, members, s.set)
			again := pick(members, readRef(keys, "p", core, members, ref))
			out, err := json.Marshal([]any{s.shown, s.left, s.acknowledged, again.shown, again.left, again.acknowledged, ref})
			if err != nil {
				t.Fatal(err)
			}
			return string(out)
		}
		if a, b := show(plain), show(acked); a != b {
			t.Fatalf("with other ACKs at rest:\n%s\n%s", a, b)
		}
	})
	for i := range reflect.TypeFor[Message]().NumField() {
		if name := reflect.TypeFor[Message]().Field(i).Name; strings.Contains(strings.ToLower(name), "ack") {
			t.Errorf("a shown message has %s", name)
		}
	}
}
