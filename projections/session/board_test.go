package session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
)

func post(n int, kind event.MessageKind) event.MessagePosted {
	return event.MessagePosted{Message: messageNo(n), Kind: kind, Text: fmt.Sprint("text ", n), Priority: event.PriorityNormal}
}

func completion(todo, answer int, key string) event.MessageCompleted {
	return event.MessageCompleted{Todo: messageNo(todo), Answer: messageNo(answer), Completion: event.CompletionID("wc_done_" + key),
		Text: "it is done", Priority: event.PriorityNormal, Key: key, Payload: "payload " + key}
}

// posted is a Session with todos 1 to n on its board.
func posted(n int) *history {
	h := began("a board")
	for i := range n {
		h.commit(post(i+1, event.MessageTodo))
	}
	return h
}

func (h *history) board() Board { return h.view().Board }

func changed(b Board, after uint64) (ids []event.MessageID) {
	for _, m := range b.Since(after) {
		ids = append(ids, m.ID)
	}
	return ids
}

// Covers: MSG-10, MSG-16, MSG-17, MSG-18
func TestWhatMovesTheRevision(t *testing.T) {
	ask := post(3, event.MessageQuestion)
	ask.RequiresAck = true
	newer := post(9, event.MessageNote)
	newer.Supersedes = messageNo(2)
	ack := event.MessagesAcknowledged{Messages: []event.MessageID{messageNo(3), messageNo(2), messageNo(77), messageNo(3)}}
	for _, c := range []struct {
		name         string
		given        []event.Event
		when         event.Event
		then         []int
		keepsTheDuty bool
	}{
		{"a post", nil, post(9, event.MessageRisk), []int{9}, false},
		{"a post again", nil, post(2, event.MessageRisk), nil, false},
		{"a post without an id", nil, event.MessagePosted{Kind: event.MessageNote}, nil, false},
		{"a post that supersedes", nil, newer, []int{2, 9}, false},
		{"a resolve", nil, event.MessageResolved{Message: messageNo(2)}, []int{2}, false},
		{"the same resolve", []event.Event{event.MessageResolved{Message: messageNo(2), Resolution: "no"}},
			event.MessageResolved{Message: messageNo(2), Resolution: "no"}, nil, false},
		{"another resolution", []event.Event{event.MessageResolved{Message: messageNo(2)}},
			event.MessageResolved{Message: messageNo(2), Resolution: "no"}, []int{2}, false},
		{"a resolve of nothing", nil, event.MessageResolved{Message: messageNo(77)}, nil, false},
		{"a completion", nil, completion(1, 9, "k"), []int{1, 9}, false},
		{"a second completion", []event.Event{completion(1, 8, "k")}, completion(1, 9, "l"), nil, false},
		{"a completion of what is resolved", []event.Event{event.MessageResolved{Message: messageNo(1)}}, completion(1, 9, "k"), nil, false},
		{"a completion of what is no todo", nil, completion(2, 9, "k"), nil, false},
		{"a completion of nothing", nil, completion(77, 9, "k"), nil, false},
		{"a completion with an answer that is there", nil, completion(1, 2, "k"), nil, false},
		{"a first ACK", nil, ack, []int{3}, true},
		{"a second ACK", []event.Event{ack}, ack, nil, true},
		{"activity elsewhere", nil, event.ContextUpdated{}, nil, false},
	} {
		h := began("a board")
		h.commit(post(1, event.MessageTodo), post(2, event.MessageNote), ask)
		if len(c.given) > 0 {
			h.commit(c.given...)
		}
		before := h.view()
		h.commit(c.when)
		after := h.view()
		var want []event.MessageID
		for _, n := range c.then {
			want = append(want, messageNo(n))
		}
		if got := changed(after.Board, before.Board.Revision); !slices.Equal(got, want) {
			t.Errorf("%s: %v changed, want %v", c.name, got, want)
		}
		if after.Board.Revision != before.Board.Revision+uint64(len(want)) || after.Board.Low != 0 {
			t.Errorf("%s: revision %d after %d", c.name, after.Board.Revision, before.Board.Revision)
		}
		if after.Core.Observed != before.Core.Observed && len(want) > 0 {
			t.Errorf("%s: an event of the tail", c.name)
		}
		for _, m := range after.Board.Since(before.Board.Revision) {
			if (m.Duty != m.Rev) != c.keepsTheDuty {
				t.Errorf("%s: duty %d of revision %d", c.name, m.Duty, m.Rev)
			}
		}
	}
}

// Several changes of one message come as one, with its state at last.
//
// Covers: MSG-18
func TestADeltaIsStateAndNoHistory(t *testing.T) {
	h := posted(2)
	before := h.board()
	h.commit(post(3, event.MessageNote))
	h.commit(event.MessageResolved{Message: messageNo(3), Resolution: "first"})
	h.commit(event.MessageResolved{Message: messageNo(3), Resolution: "second"})
	delta := h.board().Since(before.Revision)
	if len(delta) != 1 || delta[0].Status != MessageDone || delta[0].Resolution != "second" || delta[0].Rev != h.board().Revision ||
		!delta[0].Resolved.Equal(h.commits[len(h.commits)-2].Commit.At) {
		t.Fatalf("%+v", delta)
	}
	if m := must(before.Find(messageNo(1)))(t); m.Status != MessageOpen || before.Len() != 2 {
		t.Fatal("a board that somebody holds changed")
	}
}

// At the bound the oldest leaves, but a completion keeps its todo and its answer. Who has seen
// the last of what left has lost nothing, who has not is told.
//
// Covers: MSG-04, MSG-19
func TestCompletionAtTheBoundLeavesAHole(t *testing.T) {
	h := posted(MaxMessages)
	h.commit(event.MessageResolved{Message: messageNo(2), Resolution: "changed late"})
	before := h.board()
	late := must(before.Find(messageNo(2)))(t).Rev
	h.commit(completion(1, 900, "k"))
	b := h.board()
	if _, there := b.Find(messageNo(2)); there || b.Len() != MaxMessages {
		t.Fatalf("%d messages", b.Len())
	}
	todo, answer := must(b.Find(messageNo(1)))(t), must(b.Find(messageNo(900)))(t)
	if todo.Status != MessageDone || todo.ResolvedBy != answer.ID || answer.ReplyTo != todo.ID || answer.Completion != todo.Completion {
		t.Fatalf("%+v\n%+v", todo, answer)
	}
	if b.Low != late || b.Low != before.Revision {
		t.Fatalf("low %d, the message's last change was %d", b.Low, late)
	}
	// The hole does not move the order: the todo is the oldest and leaves next.
	h.commit(post(901, event.MessageNote))
	if b = h.board(); b.Len() != MaxMessages || b.Low != todo.Rev {
		t.Fatalf("%d messages, low %d, want %d", b.Len(), b.Low, todo.Rev)
	}
	if _, there := b.Find(messageNo(1)); there {
		t.Fatal("the todo stayed")
	}
	if _, there := b.Find(messageNo(3)); !there {
		t.Fatal("a newer one left")
	}
}

// A post that supersedes or answers the very message that it makes leave takes no history from
// who has seen all.
//
// Covers: MSG-19, MSG-49
func TestPostAtTheBoundTakesNoHistory(t *testing.T) {
	h := posted(MaxMessages)
	before := h.board()
	p := post(900, event.MessageTodo)
	p.Supersedes, p.ReplyTo = messageNo(1), messageNo(1)
	h.commit(p)
	if b := h.board(); b.Low > before.Revision || b.Len() != MaxMessages {
		t.Fatalf("low %d, all was seen at %d", b.Low, before.Revision)
	}
}

// A reply that leaves makes the assignment of its todo unprovable for good.
func TestALostReplyIsRemembered(t *testing.T) {
	whole, _ := newBoard(9, 0, []*Message{{ID: "a", Kind: event.MessageTodo, Status: MessageOpen, Place: 1, Rev: 1, Duty: 1},
		{ID: "b", ReplyTo: "a", Status: MessageOpen, Place: 2, Rev: 9, Duty: 2}})
	b := whole.evict(1)
	if !b.list[0].RepliesLost || b.Low != 9 || whole.list[0].RepliesLost {
		t.Fatalf("%+v", b.list[0])
	}
}

// Covers: MSG-49
func TestSupersededStaysMarked(t *testing.T) {
	h := began("a board")
	h.commit(post(1, event.MessageDecision), post(2, event.MessageNote))
	p := post(3, event.MessageDecision)
	p.Supersedes = messageNo(1)
	other := post(4, event.MessageDecision)
	other.Supersedes = messageNo(2) // a note
	late := post(5, event.MessageDecision)
	late.Supersedes = messageNo(1) // as 3 has
	h.commit(p)
	h.commit(other)
	h.commit(late)
	b := h.board()
	if m := must(b.Find(messageNo(1)))(t); m.SupersededBy != messageNo(3) || m.Status != MessageOpen || m.Text != "text 1" {
		t.Fatalf("%+v", m)
	}
	if m := must(b.Find(messageNo(3)))(t); m.Supersedes != messageNo(1) {
		t.Fatalf("%+v", m)
	}
	if m := must(b.Find(messageNo(2)))(t); m.SupersededBy != "" || must(b.Find(messageNo(4)))(t).Supersedes != "" {
		t.Fatal("a message of another kind was superseded")
	}
	if m := must(b.Find(messageNo(5)))(t); m.Supersedes != "" {
		t.Fatal("a message was superseded twice")
	}
}

// A key is known as long as its message is retained, and nowhere else.
//
// Covers: MSG-29
func TestKeysLeaveWithTheirMessages(t *testing.T) {
	h := began("a board")
	p := post(1, event.MessageTodo)
	p.Key, p.Payload = "delivery", "payload"
	h.commit(p)
	h.commit(completion(1, 2, "done"))
	if m := must(h.board().Delivered("delivery"))(t); m.ID != messageNo(1) || m.Payload != "payload" {
		t.Fatalf("%+v", m)
	}
	if m := must(h.board().CompletedUnder("done"))(t); m.ID != messageNo(1) || m.ResolvedBy != messageNo(2) || m.DonePayload != "payload done" {
		t.Fatalf("%+v", m)
	}
	for _, none := range []string{"", "other"} {
		if _, ok := h.board().Delivered(none); ok {
			t.Fatalf("%q was delivered", none)
		}
		if _, ok := h.board().CompletedUnder(none); ok {
			t.Fatalf("%q completed something", none)
		}
	}
	for i := range MaxMessages {
		h.commit(post(10+i, event.MessageNote))
	}
	v := h.view()
	if _, ok := v.Board.Delivered("delivery"); ok {
		t.Fatal("the key is still known")
	}
	if _, ok := v.Board.CompletedUnder("done"); ok {
		t.Fatal("the completion is still known")
	}
	if body := EncodeView(v); bytes.Contains(body, []byte("delivery")) || bytes.Contains(body, []byte(`"done"`)) {
		t.Fatal("a key outlives its message")
	}
}

// Events and messages are bounded apart from each other.
//
// Covers: SES-48
func TestTailAndBoardAreBoundedApart(t *testing.T) {
	h := began("long")
	for n := range 500 {
		h.commit(post(n+1, event.MessageNote))
		for range 5 {
			h.commit(event.ContextUpdated{}, event.ContextUpdated{})
		}
	}
	v := h.view()
	if v.Tail.Len() != MaxTail || v.Tail.Observed != 5001 || v.Board.Len() != MaxMessages || v.Board.Revision != 500 || v.Board.Low != 300 {
		t.Fatalf("%d of %d events, %d messages, revision %d, low %d", v.Tail.Len(), v.Tail.Observed, v.Board.Len(), v.Board.Revision, v.Board.Low)
	}
	h = posted(10)
	for range MaxTail {
		h.commit(event.ContextUpdated{})
	}
	if v := h.view(); v.Board.Len() != 10 || v.Board.Low != 0 || v.Tail.Len() != MaxTail {
		t.Fatalf("%d messages, low %d", v.Board.Len(), v.Board.Low)
	}
}

// A stored message that lacks what its observation, its assignment or its completion are proven
// by is not there after a restore, nothing is made up for it, and who has not seen all is told.
//
// Covers: MSG-42, RES-08
func TestUnprovableMessagesAreDropped(t *testing.T) {
	h := posted(3)
	h.commit(completion(1, 4, "k"))
	reply := post(5, event.MessageNote)
	reply.ReplyTo = messageNo(2)
	h.commit(reply)
	v := fold(View{}, logged(t, h.commits))
	whole := string(EncodeView(v))
	for name, c := range map[string]struct {
		from, to string
		gone     int
	}{
		"no place":                 {`"place":2,"rev":2,"duty":2`, `"rev":2,"duty":2`, 2},
		"no assignment history":    {`"place":2,"rev":2,"duty":2`, `"place":2,"rev":2`, 2},
		"no observation revision":  {`"place":2,"rev":2,"duty":2`, `"place":2,"duty":2`, 2},
		"of the future":            {`"place":2,"rev":2,"duty":2`, `"place":2,"rev":99,"duty":2`, 2},
		"another's revision":       {`"place":3,"rev":3,"duty":3`, `"place":3,"rev":4,"duty":3`, 3},
		"a completion without key": {`"done_key":"k",`, ``, 1},
		"a completion without id":  {`"resolved_by":"` + string(messageNo(4)) + `","completion":"wc_done_k"`, `"resolved_by":"` + string(messageNo(4)) + `"`, 1},
		"a status that is none":    {`"kind":"note","status":"open"`, `"kind":"note","status":"seen"`, 5},
		"an id that stands twice":  {`"id":"` + string(messageNo(3)) + `"`, `"id":"` + string(messageNo(2)) + `"`, 3},
	} {
		body := strings.Replace(whole, c.from, c.to, 1)
		if body == whole {
			t.Fatalf("%s: nothing was changed in\n%s", name, whole)
		}
		got, err := DecodeView([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := got.Board
		gone := must(v.Board.Find(messageNo(c.gone)))(t)
		if m, there := b.Find(gone.ID); there && m.Place == gone.Place {
			t.Errorf("%s: it is there: %+v", name, m)
		}
		if b.Len() != v.Board.Len()-1 || b.Revision != v.Board.Revision || b.Low != b.Revision {
			t.Errorf("%s: %d messages, revision %d, low %d", name, b.Len(), b.Revision, b.Low)
		}
		for _, m := range b.Messages() {
			was := *must(v.Board.Find(m.ID))(t)
			was.RepliesLost = gone.ReplyTo == m.ID
			if diff := cmp.Diff(&was, m); diff != "" {
				t.Errorf("%s: another one changed:\n%s", name, diff)
			}
		}
	}
}

// An event that lacks its keys completes nothing (MSG-42).
func TestCompletionWithoutProofIsNone(t *testing.T) {
	for name, spoil := range map[string]func(*event.MessageCompleted){
		"key":        func(e *event.MessageCompleted) { e.Key = "" },
		"long key":   func(e *event.MessageCompleted) { e.Key = strings.Repeat("k", MaxOpaqueBytes+1) },
		"payload":    func(e *event.MessageCompleted) { e.Payload = "" },
		"completion": func(e *event.MessageCompleted) { e.Completion = "" },
		"answer":     func(e *event.MessageCompleted) { e.Answer = "" },
	} {
		h := posted(1)
		e := completion(1, 2, "k")
		spoil(&e)
		h.commit(e)
		if b := h.board(); b.Len() != 1 || b.Revision != 1 || b.list[0].Status != MessageOpen {
			t.Errorf("without its %s: %+v", name, b.list[0])
		}
	}
}

// What a log of others holds enters a board within its bounds.
//
// Covers: RES-13
func TestForeignMessagesAreBounded(t *testing.T) {
	h := began("a board")
	p := post(1, "decree")
	p.Priority, p.Text, p.Tags = "urgent", strings.Repeat("漢", MaxMessageChars+5), make([]string, MaxTags+3)
	p.Tags[0] = strings.Repeat("t", MaxTagChars+1)
	p.Key = strings.Repeat("k", MaxOpaqueBytes+1)
	h.commit(p)
	h.commit(event.MessageResolved{Message: messageNo(1), Resolution: strings.Repeat("r", MaxMessageChars+1)})
	m := h.board().list[0]
	if m.Kind != event.MessageNote || m.Priority != event.PriorityNormal || len([]rune(m.Text)) > MaxMessageChars || len(m.Tags) != MaxTags ||
		len(m.Tags[0]) > MaxTagChars || m.Key != "" || len(m.Resolution) > MaxMessageChars {
		t.Fatalf("%s %s, %d tags, key %q", m.Kind, m.Priority, len(m.Tags), m.Key)
	}
	// Carried state is held to the same.
	v := h.view()
	wild := *m
	wild.Kind, wild.Priority, wild.Text = "decree", "urgent", p.Text
	v.Board.list = []*Message{&wild}
	got, err := DecodeView(EncodeView(v))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got.Board.list[0]); diff != "" {
		t.Fatal(diff)
	}
}

// Covers: MSG-19
func TestRowOfAMessage(t *testing.T) {
	h := began("a board")
	p := post(1, event.MessageTodo)
	p.Tags, p.RequiresAck, p.Author, p.Key, p.Payload, p.ReplyTo = []string{"one", "two"}, true, testID, "delivery hash", "payload hash", messageNo(7)
	h.commit(p)
	h.commit(completion(1, 2, "k"))
	h.commit(event.MessagesAcknowledged{Messages: []event.MessageID{messageNo(1)}})
	h.commit(event.MessageResolved{Message: messageNo(1), Resolution: "and read"})
	q := post(3, event.MessageTodo)
	q.Supersedes = messageNo(1)
	h.commit(q)
	var rows []byte
	for _, m := range h.board().Messages() {
		rows = append(appendMessage(rows, m), '\n')
	}
	golden(t, "message_rows.jsonl", rows)
}
