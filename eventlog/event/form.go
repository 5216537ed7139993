package event

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// Form writes and reads values of a struct type in the canonical JSON of commits, for what
// folds keep on disk. Fields are strings, booleans, integers, events, and structs, pointers
// and lists of these; each needs a json tag. New fields go with omitempty or omitzero, so
// that what was written before is still read.
type Form[T any] struct{ plan func() *plan }

// NewForm compiles the form of T at its first use; it panics then where T cannot be stored.
func NewForm[T any]() Form[T] {
	return Form[T]{sync.OnceValue(func() *plan { return compile(reflect.TypeFor[T]()) })}
}

// Append writes v behind b. Text that is not UTF-8 comes back with U+FFFD in its place.
func (f Form[T]) Append(b []byte, v *T) []byte {
	return f.plan().append(b, reflect.ValueOf(v).Elem())
}

// errForm tells of bytes that Append did not write: of another form, or damaged.
var errForm = errors.New("not in the stored form")

// Read fills v, which must be zero, from what Append wrote. It takes the canonical bytes and
// nothing else: a member it does not know is an error.
func (f Form[T]) Read(body []byte, v *T) error {
	if !utf8.Valid(body) {
		return errForm
	}
	return f.ReadString(string(body), v)
}

// ReadString is Read of text that is known to be UTF-8. Strings of v are cut from s and keep
// it in memory.
func (f Form[T]) ReadString(s string, v *T) error {
	r := reader{s: s, ok: true}
	r.plan(f.plan(), reflect.ValueOf(v).Elem())
	if !r.ok || r.i != len(r.s) {
		return fmt.Errorf("%w: byte %d of %d", errForm, r.i, len(r.s))
	}
	return nil
}

// AppendEvent writes an event with its stored name behind b; ReadEvent reads it.
func AppendEvent(b []byte, e Event) []byte {
	v := reflect.ValueOf(e)
	return appendEvent(b, nameOf[v.Type()], v)
}

// ReadEvent reads what AppendEvent wrote, from text that is known to be UTF-8. The event's
// strings are cut from s and keep it in memory.
func ReadEvent(s string) (Event, error) {
	r := reader{s: s, ok: true}
	e := r.event()
	if !r.ok || r.i != len(s) {
		return nil, fmt.Errorf("%w: byte %d of %d", errForm, r.i, len(s))
	}
	return e, nil
}

// Shape names the form of T: it differs where a value of one could not be read as the other.
// What events look like is part of it if T holds any, or if it is Event itself.
func (f Form[T]) Shape() string {
	var b strings.Builder
	f.plan().shape(&b)
	return b.String()
}

// EventShape is the Shape of all events together.
func EventShape() string {
	var b strings.Builder
	for _, name := range Names() {
		b.WriteString(name)
		plans[name].shape(&b)
	}
	return b.String()
}

func (p *plan) shape(b *strings.Builder) {
	b.WriteByte('{')
	for i := range p.fields {
		b.WriteString(p.fields[i].next)
		p.fields[i].value.shape(b)
	}
	b.WriteByte('}')
}

func (t *value) shape(b *strings.Builder) {
	b.WriteString(t.kind.String())
	switch {
	case t.kind == reflect.Interface:
		b.WriteString(EventShape())
	case t.sub != nil:
		t.sub.shape(b)
	case t.elem != nil:
		t.elem.shape(b)
	}
}

var eventType = reflect.TypeFor[Event]()

// appendEvent writes an event with its stored name. An event that has none cannot be made
// outside of this package.
func appendEvent(b []byte, name string, v reflect.Value) []byte {
	b = appendString(append(b, `{"type":`...), name)
	b = append(b, `,"data":`...)
	b = plans[name].append(b, v)
	return append(b, '}')
}

// event reads what appendEvent wrote.
func (r *reader) event() (e Event) {
	r.lit(`{"type":`)
	p, known := plans[r.string()]
	if !known {
		r.ok = false
		return nil
	}
	r.lit(`,"data":`)
	v := p.scratch.Get().(*reflect.Value)
	r.plan(p, *v)
	r.lit("}")
	if r.ok {
		e = v.Interface().(Event)
	}
	v.SetZero()
	p.scratch.Put(v)
	return e
}
