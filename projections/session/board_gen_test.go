package session

import (
	"fmt"

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
