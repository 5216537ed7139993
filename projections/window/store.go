package window

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"

	"webcodex/eventlog/event"
)

// Store folds the Books of all principals. They are bounded and lie in memory; the file only
// spares a start the log. It is safe for concurrent use.
type Store struct {
	mu      sync.RWMutex
	applied uint64
	books   map[string]entry // by the aggregate's id

	dirty   map[place]bool // since the last capture
	writing map[place]bool // captured; the file may have it or not
}

type entry struct {
	book    Book
	carried event.Gather
}

// place is where a row lies.
type place struct {
	aggregate string
	row
}

// New is an empty fold; feed it through Apply.
func New() *Store {
	return &Store{books: map[string]entry{}, dirty: map[place]bool{}, writing: map[place]bool{}}
}

// Apply folds one commit (eventlog.Fold).
func (s *Store) Apply(seq uint64, _ string, c event.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= s.applied {
		return
	}
	s.applied = seq
	switch c.Aggregate.Domain {
	case event.DomainWindow:
		s.applyWindow(c)
	case event.DomainRetention:
		s.applyRetention(c)
	default: // tells nothing of windows
	}
}

func (s *Store) applyWindow(c event.Commit) {
	id := c.Aggregate.ID
	e := s.books[id]
	for _, p := range e.waiting() {
		s.dirty[place{id, p}] = true
	}
	book, touched := e.book.apply(c)
	g, state := e.carried.Next(c)
	if state != nil && state.Form == stateForm {
		if b, ok := readState(state.State); ok {
			touched = append(append(touched, book.rows()...), b.rows()...)
			book = b
		}
	}
	e = entry{book, g}
	for _, r := range append(touched, e.waiting()...) {
		s.dirty[place{id, r}] = true
	}
	s.books[id] = e
}

// applyRetention forgets what was related to a removed Session.
func (s *Store) applyRetention(c event.Commit) {
	for _, ev := range c.Events {
		gone, ok := ev.(event.SessionRemoved)
		if !ok {
			continue
		}
		for id, e := range s.books {
			var touched []row
			e.book, touched = e.book.forget(gone.Session)
			for _, r := range touched {
				s.dirty[place{id, r}] = true
			}
			s.books[id] = e
		}
	}
}

// Book is what is retained for a principal, named by its fingerprint. It may hold what is too
// old by now: ask Book.At.
func (s *Store) Book(principal string) Book {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.books[event.WindowAggregate(principal).ID].book
}

// stateForm is the version of the carried state: a Book.
const stateForm = 1

// Carry gives the state of one principal's aggregate, to be brought forward in its own commits,
// and the form it has. False: it is another aggregate.
func (s *Store) Carry(_ context.Context, a event.Aggregate) (form int, state []byte, ok bool, err error) {
	if a.Domain != event.DomainWindow {
		return 0, nil, false, nil
	}
	s.mu.RLock()
	b := s.books[a.ID].book
	s.mu.RUnlock()
	state, err = marshal(b)
	return stateForm, state, err == nil, err
}

// readState reads a Book; a malformed row drops itself only.
func readState(text []byte) (Book, bool) {
	var raw struct {
		Relations []json.RawMessage `json:"relations"`
		Routes    []json.RawMessage `json:"routes"`
		Messages  []json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(text, &raw) != nil {
		return Book{}, false
	}
	var b Book
	for kind, list := range map[string][]json.RawMessage{kindRelation: raw.Relations, kindRoute: raw.Routes, kindMessage: raw.Messages} {
		for _, body := range list {
			b.read(kind, body)
		}
	}
	b.sort()
	return b, true
}

// read takes one row's body; one that is none drops itself only.
func (b *Book) read(kind string, body []byte) {
	switch kind {
	case kindRelation:
		if r := (Relation{}); json.Unmarshal(body, &r) == nil && r.valid() {
			b.Relations = append(b.Relations, r)
		}
	case kindRoute:
		if r := (Route{}); json.Unmarshal(body, &r) == nil && r.valid() {
			b.Routes = append(b.Routes, r)
		}
	case kindMessage:
		if m := (&Message{}); json.Unmarshal(body, m) == nil && m.valid() {
			b.Messages = append(b.Messages, m)
		}
	}
}

// sort brings rows that came in no order into that of their telling.
func (b *Book) sort() {
	slices.SortFunc(b.Relations, func(x, y Relation) int { return cmp.Compare(x.Told, y.Told) })
	slices.SortFunc(b.Routes, func(x, y Route) int { return cmp.Compare(x.Told, y.Told) })
	slices.SortFunc(b.Messages, func(x, y *Message) int { return cmp.Compare(x.Told, y.Told) })
}

// rows names all that the Book holds.
func (b Book) rows() (out []row) {
	for r := range b.bodies() {
		out = append(out, r)
	}
	return out
}

// bodies gives each row with what it holds.
func (b Book) bodies() map[row]any {
	out := map[row]any{}
	for _, r := range b.Relations {
		out[r.row()] = r
	}
	for _, r := range b.Routes {
		out[r.row()] = r
	}
	for _, m := range b.Messages {
		out[m.row()] = m
	}
	return out
}

// waiting names the rows of the parts gathered so far, by the version of each.
func (e entry) waiting() (out []row) {
	parts, next := e.carried.Parts()
	for i := range parts {
		out = append(out, partRow(next-uint64(len(parts)-i)))
	}
	return out
}

func partRow(version uint64) row { return row{kindPart, strconv.FormatUint(version, 10)} }

// bodies gives all the rows of an aggregate.
func (e entry) bodies() map[row]any {
	out := map[row]any{}
	maps.Copy(out, e.book.bodies())
	parts, next := e.carried.Parts()
	for i, p := range parts {
		out[partRow(next-uint64(len(parts)-i))] = p
	}
	return out
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
