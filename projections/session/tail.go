package session

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"webcodex/eventlog/event"
)

// Item is one retained tail event.
type Item struct {
	// Seq is absolute: the running count of tail events of the Session, from 1 (ruling 17).
	Seq uint64
	// Version and Index say where the event lies in the log: commit and place in it.
	Version uint64
	Index   int
	Kind    Kind
	At      time.Time
	// Inv and Role correlate the pairs of one request; empty in commits of the old shape,
	// which stay uncorrelated (EVT-13).
	Inv  event.InvocationID
	Role event.Role

	event event.SessionEvent
	text  string // the event as its row has it, where event is nil
}

// Event is what happened. Of a cold Session it is read each time: most of a tail is never
// looked at.
func (i Item) Event() event.SessionEvent {
	if i.event != nil {
		return i.event
	}
	d, err := i.decoded()
	if err != nil {
		// The row's hash and the file's Shape were right, so this program wrote the text.
		panic(fmt.Sprintf("a tail event that was written cannot be read: %v", err))
	}
	return d.event
}

// ID is the event's id in the Session s, the same after every rebuild.
func (i Item) ID(s event.SessionID) event.EventID {
	return event.TailEventID(event.SessionAggregate(s), i.Version, i.Index)
}

// Tail is the fold of a Session's newest MaxTail events (EVT-01). Values are immutable: Apply
// returns a new one, readers keep what they hold. Appending costs amortised O(events).
type Tail struct {
	// Observed counts tail events ever seen; it survives eviction (EVT-06).
	Observed   uint64
	buf        *buffer
	start, end int
}

// buffer is shared by successive Tails. A Tail reads only its own start..end, and a slot is
// written once, by whoever moved claimed over it; a second writer of the same Tail copies.
type buffer struct {
	claimed atomic.Int64
	items   []Item
}

// Items are the retained events, oldest first. The slice is shared: it must not be changed.
func (t Tail) Items() []Item {
	if t.buf == nil {
		return nil
	}
	return t.buf.items[t.start:t.end:t.end]
}

// Len is the number of retained events.
func (t Tail) Len() int { return t.end - t.start }

// Evicted reports whether events were dropped to keep the bound (EVT-05).
func (t Tail) Evicted() bool { return t.Observed > uint64(t.Len()) }

// Retains reports whether the start of a call is in the tail still.
func (t Tail) Retains(call event.CallID) bool {
	for _, it := range slices.Backward(t.Items()) {
		if it.Kind != KindToolCallStarted {
			continue
		}
		if e, ok := it.Event().(event.ToolCallStarted); ok && e.Call == call {
			return true
		}
	}
	return false
}

// First is the absolute sequence of the oldest retained event, 0 where there is none (EVT-23).
func (t Tail) First() uint64 {
	if t.Len() == 0 {
		return 0
	}
	return t.Observed - uint64(t.Len()) + 1
}

// decoded is the tail with every event read, for one that is kept.
func (t Tail) decoded() (Tail, error) {
	items := slices.Clone(t.Items())
	for i := range items {
		var err error
		if items[i], err = items[i].decoded(); err != nil {
			return Tail{}, err
		}
	}
	return NewTail(items, t.Observed)
}

// Apply folds one commit into the tail; the cut may fall inside a commit's events.
func (t Tail) Apply(c event.Commit) Tail {
	n := 0
	for _, e := range c.Events {
		if se, ok := e.(event.SessionEvent); ok && TailKind(se) != "" {
			n++
		}
	}
	if n == 0 {
		return t
	}
	t = t.grow(n)
	for i, e := range c.Events {
		se, ok := e.(event.SessionEvent)
		if !ok {
			continue
		}
		k := TailKind(se)
		if k == "" {
			continue
		}
		t.Observed++
		t.buf.items[t.end] = item(c, i, k, t.Observed, se)
		t.end++
	}
	if over := t.Len() - MaxTail; over > 0 {
		t.start += over
	}
	return t
}

// grow gives a Tail with room for n events that nobody else will write.
func (t Tail) grow(n int) Tail {
	if t.buf != nil && t.end+n <= len(t.buf.items) && t.buf.claimed.CompareAndSwap(int64(t.end), int64(t.end+n)) {
		return t
	}
	have := t.Items()
	size := max(16, 2*(len(have)+n))
	b := &buffer{items: make([]Item, size)}
	b.claimed.Store(int64(len(have) + n))
	copy(b.items, have)
	return Tail{Observed: t.Observed, buf: b, end: len(have)}
}

func item(c event.Commit, index int, k Kind, seq uint64, e event.SessionEvent) Item {
	it := Item{Seq: seq, Version: c.Version, Index: index, Kind: k, At: c.At, Inv: c.Invocation, event: e}
	switch e := e.(type) {
	case event.ToolCallStarted:
		it.Role = e.Role
		if at, err := time.Parse(event.TimeForm, e.At); e.At != "" && err == nil {
			it.At = at
		}
	case event.ToolCallFinished:
		it.Role = e.Role
	case event.ExecutionFinished:
		// The Runner's time of the end, unless its clock is ahead of ours (VAL-10).
		if at, err := time.Parse(event.TimeForm, e.FinishedAt); e.FinishedAt != "" && err == nil && at.Before(it.At) {
			it.At = at
		}
		it.Inv = ""
	default:
		it.Inv = ""
	}
	return it
}
