package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// boardModel plays one Session's board against the plainest account of what a board is: every
// message there ever was as it was at last, and which of them are retained. Decisions see what
// the Store gives, which lies in memory, in rows, or in the log alone.
type boardModel struct {
	t  *rapid.T
	w  *world
	at time.Time
	n  int // of ids

	last      map[event.MessageID]Message // as seen, with the keys
	retained  []event.MessageID
	observers []*watching
	fences    []assigned
	keys      []string // that something was posted or completed under
	revision  uint64
	// told is what the first answer to a key was: the message it made.
	told map[string]event.MessageID
	done map[event.MessageID]int // completions of a todo
	lost int
}

type assigned struct {
	todo  event.MessageID
	fence string
}

func newBoardModel(t *rapid.T, tb testing.TB) *boardModel {
	m := &boardModel{t: t, w: newWorld(tb, rapid.IntRange(0, 2).Draw(t, "target")), at: newHistory().at,
		last: map[event.MessageID]Message{}, told: map[string]event.MessageID{}, done: map[event.MessageID]int{}}
	m.commit(created("a board"))
	for range rapid.SampledFrom([]int{0, MaxMessages - 5, MaxMessages + 5}).Draw(t, "posts before") {
		m.post(event.MessagePosted{Kind: event.MessageTodo, Text: "before", Priority: event.PriorityNormal})
	}
	for range 3 {
		m.observers = append(m.observers, m.begins())
	}
	return m
}

func (m *boardModel) id() event.MessageID {
	m.n++
	return messageNo(m.n)
}

// some is a message that may be there, or may have been.
func (m *boardModel) some(what string) event.MessageID {
	if k := rapid.IntRange(0, 9).Draw(m.t, what); k > 0 && len(m.retained) > 0 {
		reach := min(len(m.retained), 12)
		i := rapid.IntRange(0, reach-1).Draw(m.t, "which")
		if k < 4 { // what leaves next
			return m.retained[i]
		}
		return m.retained[len(m.retained)-reach+i]
	}
	return messageNo(rapid.IntRange(0, m.n+1).Draw(m.t, "any"))
}

func (m *boardModel) commit(events ...event.Event) time.Time {
	m.at = m.at.Add(time.Second)
	m.w.commit(Stored{Commit: event.Commit{Aggregate: event.SessionAggregate(testID), Version: m.w.truth[testID].Core.Version + 1,
		At: m.at, Events: events}})
	return m.at
}

// board reads it as a command or as a reader does.
func (m *boardModel) board() Board {
	var b Board
	var err error
	switch rapid.IntRange(0, 2).Draw(m.t, "read") {
	case 0:
		_, b, err = m.w.store.LoadBoard(testID)
	case 1:
		var v View
		v, err = m.w.store.Load(testID)
		b = v.Board
	default:
		if _, err = m.w.store.Target(testID); err == nil {
			_, b, err = m.w.store.LoadBoard(testID)
		}
	}
	if err != nil {
		m.t.Fatal(err)
	}
	if b.Revision < m.revision {
		m.t.Fatalf("revision %d after %d", b.Revision, m.revision)
	}
	m.revision = b.Revision
	return b
}

// room is what MSG-04 says.
func (m *boardModel) room(keep event.MessageID) {
	for len(m.retained) >= MaxMessages {
		i := slices.IndexFunc(m.retained, func(id event.MessageID) bool { return id != keep })
		m.retained = slices.Delete(m.retained, i, i+1)
	}
}

func (m *boardModel) has(id event.MessageID) bool { return slices.Contains(m.retained, id) }

func (m *boardModel) put(id event.MessageID, change func(*Message)) {
	x := m.last[id]
	change(&x)
	m.last[id] = x
}

// post decides like the command: a known key gives its message, and nothing is named that has left.
func (m *boardModel) post(e event.MessagePosted) {
	b := m.w.truth[testID].Board
	if len(m.observers) > 0 { // those posted before are too many to ask for each
		b = m.board()
	}
	if was, known := b.Delivered(e.Key); known {
		if m.told[e.Key] != was.ID {
			m.t.Fatalf("key %s gives %s, it was %s", e.Key, was.ID, m.told[e.Key])
		}
		return
	}
	if e.ReplyTo != "" && !m.has(e.ReplyTo) || e.Supersedes != "" && (!m.has(e.Supersedes) || m.last[e.Supersedes].Kind != e.Kind || m.last[e.Supersedes].SupersededBy != "") {
		return
	}
	if was := m.told[e.Key]; e.Key != "" && m.has(was) {
		m.t.Fatalf("key %s is forgotten, its message %s is there", e.Key, was)
	}
	e.Message = m.id()
	if e.Key != "" {
		m.told[e.Key] = e.Message
	}
	at := m.commit(e)
	m.room("")
	if m.has(e.Supersedes) {
		m.put(e.Supersedes, func(x *Message) { x.SupersededBy = e.Message })
	}
	m.last[e.Message] = Message{ID: e.Message, Kind: e.Kind, Status: MessageOpen, Priority: e.Priority, Text: e.Text, ReplyTo: e.ReplyTo,
		RequiresAck: e.RequiresAck, Supersedes: e.Supersedes, Created: at}
	m.retained = append(m.retained, e.Message)
}

func (m *boardModel) drawPost() {
	e := event.MessagePosted{Kind: rapid.SampledFrom(event.MessageKinds()).Draw(m.t, "kind"), Text: fmt.Sprint("text ", m.n),
		Priority: event.PriorityHigh, RequiresAck: rapid.Bool().Draw(m.t, "ack")}
	switch rapid.IntRange(0, 5).Draw(m.t, "names") {
	case 0, 1:
		e.ReplyTo = m.some("reply to")
	case 2:
		e.Supersedes = m.some("supersedes")
		e.Kind = m.last[e.Supersedes].Kind
		if e.Kind == "" {
			return
		}
	case 3:
		e.Kind = event.MessageTodo
	}
	switch k := rapid.IntRange(0, 5).Draw(m.t, "key"); {
	case k == 0:
		e.Key, e.Payload = fmt.Sprint("key ", m.n), "payload"
		m.keys = append(m.keys, e.Key)
	case k == 1 && len(m.keys) > 0: // a retry
		e.Key, e.Payload = rapid.SampledFrom(m.keys).Draw(m.t, "again"), "payload"
	}
	m.post(e)
}

func (m *boardModel) resolve() {
	b, id := m.board(), m.some("resolve")
	text := rapid.SampledFrom([]string{"", "yes", "no"}).Draw(m.t, "resolution")
	was, ok := b.Find(id)
	if ok != m.has(id) {
		m.t.Fatalf("%s is there: %v", id, ok)
	}
	at := m.commit(event.MessageResolved{Message: id, Resolution: text})
	if !ok {
		return
	}
	if same := was.Status == MessageDone && was.Resolution == text; same != (m.w.truth[testID].Board.Revision == b.Revision) {
		m.t.Fatalf("a resolve changed something: %v", !same)
	}
	m.put(id, func(x *Message) {
		if x.Status == MessageOpen {
			x.Status, x.Resolved = MessageDone, at
		}
		x.Resolution = text
	})
}

func (m *boardModel) acknowledge() {
	ids := []event.MessageID{m.some("ack"), m.some("and")}
	at := m.commit(event.MessagesAcknowledged{Messages: ids})
	for _, id := range ids {
		if m.has(id) && m.last[id].RequiresAck && m.last[id].Acked.IsZero() {
			m.put(id, func(x *Message) { x.Acked = at })
		}
	}
}

// fence names an open todo and all that was said to it; empty: it cannot be proven.
func fence(b Board, todo event.MessageID) string {
	x, ok := b.Find(todo)
	if !ok || x.Kind != event.MessageTodo || x.Status != MessageOpen || x.RepliesLost {
		return ""
	}
	var s strings.Builder
	fmt.Fprint(&s, x.ID, x.Duty)
	for _, r := range b.Replies(todo) {
		fmt.Fprint(&s, " ", r.ID, r.Duty)
	}
	return s.String()
}

func (m *boardModel) fetch() {
	todo := m.some("assignment")
	if f := fence(m.board(), todo); f != "" {
		m.fences = append(m.fences, assigned{todo, f})
	}
}

// complete decides like the command, with a fence that may be old and a key that may be used.
func (m *boardModel) complete() {
	if len(m.fences) == 0 {
		return
	}
	a := m.fences[len(m.fences)-1-rapid.IntRange(0, min(len(m.fences), 6)-1).Draw(m.t, "fence")]
	key := "done " + string(a.todo)
	if rapid.IntRange(0, 3).Draw(m.t, "other key") == 0 {
		key += " otherwise"
	}
	b := m.board()
	if was, known := b.CompletedUnder(key); known {
		if was.ID != a.todo || was.ResolvedBy != m.told[key] {
			m.t.Fatalf("key %q gives %s by %s, it was by %s", key, was.ID, was.ResolvedBy, m.told[key])
		}
		return // replayed
	}
	if m.has(a.todo) && m.told[key] != "" {
		m.t.Fatalf("the completion under %q is forgotten, its todo is there", key)
	}
	if fence(b, a.todo) != a.fence {
		return
	}
	answer := m.id()
	at := m.commit(event.MessageCompleted{Todo: a.todo, Answer: answer, Completion: event.CompletionID(fmt.Sprintf("wc_done_%032x", m.n)),
		Text: "done", Priority: event.PriorityNormal, Key: key, Payload: "payload"})
	m.told[key] = answer
	if m.done[a.todo]++; m.done[a.todo] > 1 {
		m.t.Fatalf("%s was completed twice", a.todo)
	}
	id := event.CompletionID(fmt.Sprintf("wc_done_%032x", m.n))
	m.room(a.todo)
	m.put(a.todo, func(x *Message) { x.Status, x.Resolved, x.ResolvedBy, x.Completion = MessageDone, at, answer, id })
	m.last[answer] = Message{ID: answer, Kind: event.MessageAnswer, Status: MessageOpen, Priority: event.PriorityNormal, Text: "done",
		ReplyTo: a.todo, Created: at, Completion: id}
	m.retained = append(m.retained, answer)
}
