package event

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// A plan is how one struct type is written and read: its stored fields in order. The log's
// own bodies have one canonical form, so both directions can go through them field by field
// without the general decoder, which would be ten times slower on the path of every commit
// and at every start. What a plan can't read goes to encoding/json; what it writes is what
// encoding/json would write. Tests hold both.
type plan struct {
	fields []field
	// scratch holds zero values to read into: an event is copied when it becomes an Event,
	// and needs no second piece of memory before that.
	scratch sync.Pool
}

type field struct {
	key   string // `"name":`
	next  string // the same behind another field
	index int
	empty bool // omitempty
	zero  bool // omitzero
	value value
}

// value is how one value is written and read.
type value struct {
	kind reflect.Kind
	elem *value // of a pointer or a slice
	sub  *plan  // of a struct
	typ  reflect.Type
}

// plans of every stored event, compiled once: the set is closed.
var plans = func() map[string]*plan {
	m := make(map[string]*plan, len(stored))
	for name, t := range stored {
		m[name] = compile(t)
	}
	return m
}()

var actorPlan = compile(reflect.TypeFor[Actor]())

func compile(t reflect.Type) *plan {
	p := &plan{scratch: sync.Pool{New: func() any { v := reflect.New(t).Elem(); return &v }}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			panic(fmt.Sprintf("%s.%s is stored without a name", t, f.Name))
		}
		p.fields = append(p.fields, field{key: `"` + name + `":`, next: `,"` + name + `":`, index: i,
			empty: opts == "omitempty" && f.Type.Kind() != reflect.Struct, zero: opts == "omitzero",
			value: compileValue(f.Type)})
	}
	return p
}

func compileValue(t reflect.Type) value {
	v := value{kind: t.Kind(), typ: t}
	switch t.Kind() {
	case reflect.Struct:
		v.sub = compile(t)
	case reflect.Pointer, reflect.Slice:
		e := compileValue(t.Elem())
		v.elem = &e
	case reflect.Interface:
		if t != eventType {
			panic(fmt.Sprintf("%s cannot be stored: of interfaces only Event is", t))
		}
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64:
	default:
		panic(fmt.Sprintf("%s cannot be stored: a stored value is a string, a boolean, an integer, or a struct, pointer or list of these", t))
	}
	return v
}
