package session

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

func messageNo(n int) event.MessageID { return event.MessageID(fmt.Sprintf("wc_msg_%032x", n)) }

// drawnBoard draws events of a board; they mostly name what was posted, however long ago.
type drawnBoard struct{ posts, completions int }

func (d *drawnBoard) id() event.MessageID {
	d.posts++
	return messageNo(d.posts)
}

func (d *drawnBoard) some(t *rapid.T, what string) event.MessageID {
	if n := rapid.IntRange(-1, d.posts).Draw(t, what); n >= 0 {
		return messageNo(n) // 0 and, with luck, one that has left
	}
	return ""
}

// draw gives one event, or many posts, which fill a board.
func (d *drawnBoard) draw(t *rapid.T) []event.Event {
	switch k := rapid.IntRange(0, 19).Draw(t, "board"); {
	case k <= 9 || d.posts == 0:
		return []event.Event{d.post(t)}
	case k <= 12:
		return []event.Event{event.MessageResolved{Message: d.some(t, "resolved"), Resolution: rapid.SampledFrom([]string{"", "done", "no"}).Draw(t, "resolution")}}
	case k <= 15:
		d.completions++
		return []event.Event{event.MessageCompleted{Todo: d.some(t, "todo"), Answer: d.id(), Text: hostileText(t, 50), Priority: event.PriorityNormal,
			Completion: event.CompletionID(fmt.Sprintf("wc_done_%032x", d.completions)), Key: fmt.Sprint("done", d.completions), Payload: "p"}}
	case k <= 18:
		return []event.Event{event.MessagesAcknowledged{Messages: []event.MessageID{d.some(t, "acked"), d.some(t, "acked too")}}}
	default:
		var out []event.Event
		for range rapid.IntRange(1, MaxMessages+3).Draw(t, "many") {
			out = append(out, event.MessagePosted{Message: d.id(), Kind: event.MessageTodo, Text: "x", Priority: event.PriorityLow, RequiresAck: true})
		}
		return out
	}
}

func (d *drawnBoard) post(t *rapid.T) event.MessagePosted {
	e := event.MessagePosted{Kind: rapid.SampledFrom(event.MessageKinds()).Draw(t, "kind"), Text: hostileText(t, 200),
		Priority: event.PriorityHigh, RequiresAck: rapid.Bool().Draw(t, "ack"), ReplyTo: d.some(t, "reply to"), Supersedes: d.some(t, "supersedes"),
		Tags: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b c", "漢"}), 0, 3).Draw(t, "tags")}
	if rapid.Bool().Draw(t, "todo") {
		e.Kind = event.MessageTodo
	}
	if rapid.Bool().Draw(t, "keyed") {
		e.Key, e.Payload = fmt.Sprint("key", d.posts), "p"
	}
	e.Message = d.id()
	return e
}

// Whatever carried messages claim of themselves, the board that comes of them is within its
// bounds, holds nothing that is unproven, and comes back from its own bytes as it is.
//
// Covers: MSG-42, RES-08, RES-13
func TestAnyCarriedBoardIsAnHonestOne(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		small := rapid.Uint64Range(0, 12)
		revision, low := small.Draw(t, "revision"), small.Draw(t, "low")
		word := rapid.SampledFrom([]string{"", "", "x", strings.Repeat("y", MaxOpaqueBytes+1)})
		forms := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) messageForm {
			at := small.Draw(t, "place")
			f := messageForm{ID: messageNo(rapid.IntRange(0, 9).Draw(t, "id")), Kind: rapid.SampledFrom(append(event.MessageKinds(), "decree")).Draw(t, "kind"),
				Status: rapid.SampledFrom([]MessageStatus{MessageOpen, MessageDone, "seen"}).Draw(t, "status"), Priority: "urgent",
				Text: hostileText(t, 20), ReplyTo: messageNo(rapid.IntRange(0, 9).Draw(t, "reply to")), Place: at, Duty: at, Rev: at}
			if rapid.Bool().Draw(t, "changed") {
				f.Duty, f.Rev = small.Draw(t, "duty"), small.Draw(t, "rev")
			}
			if rapid.IntRange(0, 2).Draw(t, "completed") == 0 {
				f.ResolvedBy, f.Completion = event.MessageID(word.Draw(t, "by")), event.CompletionID(word.Draw(t, "completion"))
				f.DoneKey, f.DonePayload = word.Draw(t, "key"), word.Draw(t, "payload")
			}
			return f
		}), 0, 9).Draw(t, "messages")
		slices.SortStableFunc(forms, func(a, b messageForm) int { return cmp.Compare(a.Place, b.Place) })
		b := carriedBoard(revision, low, forms)
		if b.Revision != revision || b.Low > revision || b.Len() < len(forms) && b.Low != revision {
			t.Fatalf("revision %d, low %d, %d of %d messages", b.Revision, b.Low, b.Len(), len(forms))
		}
		for _, m := range b.Messages() {
			if !m.provable(revision) || len(m.DoneKey) > MaxOpaqueBytes || m.Priority != event.PriorityNormal || m.Kind == "decree" {
				t.Fatalf("%+v", m)
			}
		}
		if again := carriedBoard(b.Revision, b.Low, formsOfBoard(b)); !reflect.DeepEqual(plainly(b), plainly(again)) {
			t.Fatalf("%+v\n%+v", plainly(b), plainly(again))
		}
		b.Apply(event.Commit{Events: new(drawnBoard).draw(t)}) // and it goes on
	})
}
