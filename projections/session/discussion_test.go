package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog/event"
)

var boardAt = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func msg(n int) event.MessageID {
	return event.MessageID(fmt.Sprintf("%s%032x", event.MessagePrefix, n))
}

// talked folds events, one commit each, a second apart.
func talked(events ...event.Event) Board {
	var b Board
	for i, e := range events {
		b = b.Apply(event.Commit{Version: uint64(i + 1), At: boardAt.Add(time.Duration(i) * time.Second), Events: []event.Event{e}})
	}
	return b
}

func note(n int, kind event.MessageKind, text string) event.MessagePosted {
	return event.MessagePosted{Message: msg(n), Kind: kind, Text: text, Priority: event.PriorityNormal}
}

// The message's wire form: a fresh one with null where nothing applies, and one with everything.
//
// Covers: MSG-01, MSG-41
func TestMessageIsGolden(t *testing.T) {
	todo := note(1, event.MessageTodo, "count <it>")
	todo.Tags, todo.Priority, todo.RequiresAck = []string{"a", "b"}, event.PriorityHigh, true
	next := note(2, event.MessageTodo, "count it again")
	next.Supersedes = msg(1)
	b := talked(todo, event.MessagesAcknowledged{Messages: []event.MessageID{msg(1)}}, next, note(3, event.MessageNote, "fresh"),
		event.MessageCompleted{Todo: msg(1), Answer: msg(4), Completion: "wc_done_" + event.CompletionID(strings.Repeat("5", 32)), Text: "7",
			Priority: event.PriorityLow, Author: event.SessionID("wc_sess_" + strings.Repeat("6", 32)), Key: "k", Payload: "p"},
		event.MessageResolved{Message: msg(3), Resolution: "seen"})
	var shown []MessageView
	for _, m := range b.Messages() {
		shown = append(shown, m.Show(event.SessionID("wc_sess_"+strings.Repeat("9", 32))))
	}
	golden(t, "messages.json", shown)
}

// Covers: MSG-43
func TestDiscussionIsGolden(t *testing.T) {
	var events []event.Event
	for i, kind := range event.MessageKinds() {
		for n := range i + 1 {
			events = append(events, note(10*i+n, kind, fmt.Sprintf("%s %d", kind, n)))
		}
	}
	high := note(100, event.MessageTodo, strings.Repeat("é", 300))
	high.Priority, high.RequiresAck = event.PriorityHigh, true
	events = append(events, high, event.MessageResolved{Message: msg(20)},
		event.MessageCompleted{Todo: msg(82), Answer: msg(101), Completion: "wc_done_x", Text: "done", Priority: event.PriorityNormal, Key: "k", Payload: "p"})
	golden(t, "discussion.json", NewDiscussion(event.SessionID("wc_sess_"+strings.Repeat("9", 32)), talked(events...), nil))
}

// Counts cover the whole retained board; each list its newest few, each body its beginning,
// whatever the texts are.
//
// Covers: MSG-43
func TestDiscussionIsBounded(t *testing.T) {
	var events []event.Event
	for n := range MaxMessages {
		m := note(n, event.MessageKinds()[n%9], strings.Repeat("\u0001🏴", MaxMessageChars/2))
		events = append(events, m)
	}
	b := talked(events...)
	for _, limit := range []*int{nil, new(int), ptr(3), ptr(100)} {
		d := NewDiscussion("s", b, limit)
		want := MaxDiscussionItems
		if limit != nil {
			want = min(max(*limit, 1), want)
		}
		if d.Counts.Total != MaxMessages || d.Counts.Open != MaxMessages || d.Counts.ByKind[event.MessageTodo].Total != d.Todos.Total {
			t.Errorf("counts: %+v", d.Counts)
		}
		if d.Risks.Returned != want || len(d.Risks.Items) != want || !d.Risks.Truncated || d.Risks.Total < 20 {
			t.Errorf("risks: %d of %d", d.Risks.Returned, d.Risks.Total)
		}
		for _, s := range d.Decisions.Items {
			if n := len([]rune(s.Message)); n > MaxDiscussionChars || !s.Truncated {
				t.Errorf("%d characters", n)
			}
		}
		if raw, err := json.Marshal(d); err != nil || len(raw) > MaxAnswerBytes*3/2 {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
	}
	if d := NewDiscussion("s", Board{}, nil); d.Counts.Total != 0 || d.Todos.Items == nil || d.Todos.Truncated {
		t.Errorf("an empty board: %+v", d)
	}
}
