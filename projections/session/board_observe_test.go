package session

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// watching is an observer: what it knows, and up to which revision.
type watching struct {
	cursor uint64
	knows  map[event.MessageID]Message
}

// seen is what everybody sees of a message.
func seen(m Message) Message {
	m.Place, m.Rev, m.Duty, m.RepliesLost = 0, 0, 0, false
	m.Key, m.Payload, m.DoneKey, m.DonePayload = "", "", "", ""
	return m
}

// begins is an observer with a baseline and the list as it was then.
func (m *boardModel) begins() *watching {
	b := m.board()
	o := &watching{cursor: b.Revision, knows: map[event.MessageID]Message{}}
	for _, x := range b.Messages() {
		o.knows[x.ID] = seen(*x)
	}
	return o
}

// observe reads one page; more: there is another one.
func (m *boardModel) observe(i, limit int) (more bool) {
	b, o := m.board(), m.observers[i]
	if o.cursor < b.Low {
		if !slices.ContainsFunc(m.gone(), func(id event.MessageID) bool { return !equal(o.knows[id], m.last[id]) }) {
			m.t.Fatalf("history is lost for nobody: cursor %d, low %d", o.cursor, b.Low)
		}
		m.lost++
		m.observers[i] = m.begins()
		return false
	}
	delta := b.Since(o.cursor)
	for _, x := range delta[:min(limit, len(delta))] {
		o.knows[x.ID], o.cursor = seen(*x), x.Rev
	}
	if more = len(delta) > limit; !more {
		o.cursor = b.Revision
	}
	return more
}

// gone are the messages that have left.
func (m *boardModel) gone() (ids []event.MessageID) {
	for id := range m.last {
		if !m.has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func equal(a, b Message) bool { return cmp.Equal(a, b, empty) }

// check: the board is what the account says, and who has caught up knows it, and the last of
// all that has left since it began.
func (m *boardModel) check() {
	b := m.board()
	var ids []event.MessageID
	for _, x := range b.Messages() {
		ids = append(ids, x.ID)
		if !equal(seen(*x), m.last[x.ID]) {
			m.t.Fatal(cmp.Diff(m.last[x.ID], seen(*x)))
		}
	}
	if !slices.Equal(ids, m.retained) {
		m.t.Fatalf("retained %v, want %v", ids, m.retained)
	}
	if diff := cmp.Diff(plainly(m.w.truth[testID].Board), plainly(b), empty); diff != "" {
		m.t.Fatal(diff)
	}
	for i := range m.observers {
		for m.observe(i, 7) {
		}
		o := m.observers[i]
		for _, id := range m.retained {
			if _, known := o.knows[id]; !known {
				m.t.Fatalf("an observer that lost nothing does not know %s", id)
			}
		}
		for id, x := range o.knows {
			if !equal(x, m.last[id]) {
				m.t.Fatal(cmp.Diff(m.last[id], x))
			}
		}
	}
}

func (m *boardModel) step() {
	switch k := rapid.IntRange(0, 39).Draw(m.t, "step"); {
	case k <= 13:
		m.drawPost()
	case k <= 16:
		m.resolve()
	case k <= 18:
		m.acknowledge()
	case k <= 21:
		m.fetch()
	case k <= 25:
		m.complete()
	case k <= 31:
		m.observe(rapid.IntRange(0, len(m.observers)-1).Draw(m.t, "observer"), rapid.IntRange(1, 100).Draw(m.t, "limit"))
	case k == 32: // a token is lost, the observer begins again
		m.observers[rapid.IntRange(0, len(m.observers)-1).Draw(m.t, "observer")] = m.begins()
	case k <= 34:
		m.w.flush()
	case k == 35:
		old := m.w.path
		m.w.crash()
		m.unlink(old)
	case k == 36:
		m.w.restart()
	case k == 37:
		m.drop()
	case k == 38:
		m.commit(event.ContextUpdated{})
	default:
		m.check()
	}
}

// drop ends a life, and the next one has the log alone.
func (m *boardModel) drop() {
	if err := m.w.keeper.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.unlink(m.w.path)
	m.w.open()
}

func (m *boardModel) unlink(path string) {
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !os.IsNotExist(err) {
			m.t.Fatal(err)
		}
	}
}

// Whatever is posted, resolved, completed, acknowledged and evicted, and however often the Store
// begins again from its rows or from the log: who observes a board and was not told that
// history is lost knows exactly the board, a todo is completed once, a key gives what it gave,
// and the revision never falls.
//
// Covers: MSG-04, MSG-10, MSG-17, MSG-19, MSG-29, RES-12
func TestBoardModel(t *testing.T) {
	worlds, steps := 8, 150
	if os.Getenv("WEBCODEX_SOAK") != "" {
		worlds, steps = 100, 1000
	}
	lost, completed := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		if worlds--; worlds < 0 {
			return
		}
		whole := false
		defer func() {
			if !whole { // rapid tries it again, smaller
				worlds = 1 << 20
			}
		}()
		m := newBoardModel(rt, t)
		defer func() { _ = m.w.keeper.Close() }()
		for range steps {
			m.step()
		}
		m.check()
		if m.w.reread > 0 {
			rt.Fatalf("%d rows were damaged", m.w.reread)
		}
		lost, completed, whole = lost+m.lost, completed+len(m.done), true
	})
	if lost == 0 || completed == 0 {
		t.Fatalf("%d observers lost history, %d todos were completed", lost, completed)
	}
}
