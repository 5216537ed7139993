package event

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// parseTime reads TimeForm, which is of fixed width, and nothing else.
func parseTime(s string) (time.Time, bool) {
	if len(s) != len(TimeForm) {
		return time.Time{}, false
	}
	var n [7]int // year, month, day, hour, minute, second, millisecond
	field, sep := 0, "--T::.Z"
	for i := range len(s) {
		c := s[i]
		if c >= '0' && c <= '9' && TimeForm[i] >= '0' && TimeForm[i] <= '9' {
			n[field] = n[field]*10 + int(c-'0')
			continue
		}
		if c != TimeForm[i] || c != sep[field] {
			return time.Time{}, false
		}
		field++
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*int(time.Millisecond), time.UTC)
	// Date normalises the 31st of April; a time that was not one is not read as another.
	return t, t.Month() == time.Month(n[1]) && t.Day() == n[2] && n[3] < 24 && n[4] < 60 && n[5] < 60
}

// reader goes through a canonical body. Its strings are cut from one copy of the body, so a
// commit is one piece of memory. ok turns false at the first surprise and stays so; the
// caller then takes the general way.
type reader struct {
	s  string
	i  int
	ok bool
}

// readCommit reads a body in canonical form; false says nothing about the body but that it
// is not in that form.
func readCommit(body []byte) (Commit, bool) {
	r := reader{s: string(body), ok: utf8.Valid(body)}
	var c Commit
	r.lit(`{"v":`)
	c.Format = int(r.int())
	r.lit(`,"id":`)
	c.ID = CommandID(r.string())
	r.lit(`,"agg":`)
	agg, ok := ParseAggregate(r.string())
	r.ok = r.ok && ok
	c.Aggregate = agg
	r.lit(`,"ver":`)
	c.Version = r.uint()
	r.lit(`,"prev":`)
	c.Prev = r.string()
	r.lit(`,"at":`)
	at, ok := parseTime(r.string())
	r.ok = r.ok && ok
	c.At = at
	r.lit(`,"actor":`)
	r.plan(actorPlan, reflect.ValueOf(&c.Actor).Elem())
	if r.has(`,"inv":`) {
		c.Invocation = InvocationID(r.string())
	}
	r.lit(`,"server":`)
	c.Server = InstanceID(r.string())
	r.lit(`,"events":[`)
	c.Events = r.events()
	r.lit(`}`)
	return c, r.ok && r.i == len(r.s) && c.Format == Format
}

func (r *reader) events() []Event {
	out := make([]Event, 0, 4)
	if r.has("]") {
		return out
	}
	for r.ok {
		e := r.event()
		if !r.ok {
			break
		}
		out = append(out, e)
		if r.has("]") {
			break
		}
		r.lit(",")
	}
	return out
}

func (r *reader) plan(p *plan, v reflect.Value) {
	r.lit("{")
	first := true
	for i := range p.fields {
		if r.i < len(r.s) && r.s[r.i] == '}' {
			break // most of what may be there is not
		}
		f := &p.fields[i]
		if first && !r.has(f.key) || !first && !r.has(f.next) {
			continue
		}
		first = false
		r.value(&f.value, v.Field(f.index))
		if !r.ok {
			return
		}
	}
	r.lit("}")
}

func (r *reader) value(t *value, v reflect.Value) {
	switch t.kind {
	case reflect.String:
		v.SetString(r.string())
	case reflect.Bool:
		switch {
		case r.has("true"):
			v.SetBool(true)
		case r.has("false"):
		default:
			r.ok = false
		}
	case reflect.Uint64:
		v.SetUint(r.uint())
	case reflect.Struct:
		r.plan(t.sub, v)
	case reflect.Pointer:
		if !r.has("null") {
			p := reflect.New(t.typ.Elem())
			r.value(t.elem, p.Elem())
			v.Set(p)
		}
	case reflect.Slice:
		r.slice(t, v)
	case reflect.Interface:
		if e := r.event(); r.ok {
			v.Set(reflect.ValueOf(e))
		}
	case reflect.Int:
		v.SetInt(r.intOf(strconv.IntSize))
	default:
		v.SetInt(r.intOf(64))
	}
}

func (r *reader) slice(t *value, v reflect.Value) {
	if r.has("null") {
		return
	}
	r.lit("[")
	if r.has("]") {
		v.Set(reflect.MakeSlice(t.typ, 0, 0))
		return
	}
	n := 0
	for r.ok {
		if n == v.Cap() {
			v.Grow(max(2, n))
		}
		v.SetLen(n + 1)
		r.value(t.elem, v.Index(n))
		n++
		if r.has("]") {
			return
		}
		r.lit(",")
	}
}

// has consumes a literal that may be there.
func (r *reader) has(s string) bool {
	if len(r.s)-r.i < len(s) || r.s[r.i:r.i+len(s)] != s {
		return false
	}
	r.i += len(s)
	return true
}

// lit consumes a literal that must be there.
func (r *reader) lit(s string) { r.ok = r.has(s) && r.ok }

// string reads a string; one with escapes is left to encoding/json.
func (r *reader) string() string {
	if !r.has(`"`) {
		r.ok = false
		return ""
	}
	s := r.s[r.i:]
	for i := range len(s) {
		if !stops[s[i]] {
			continue
		}
		start := r.i
		r.i += i
		switch s[i] {
		case '"':
			r.i++
			return s[:i]
		case '\\':
			return r.escaped(start - 1)
		}
		break
	}
	r.ok = false
	return ""
}

// stops holds the bytes that end a string or need care in one.
var stops = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// escaped reads a string that begins with the quote at start, from its first escape on.
func (r *reader) escaped(start int) string {
	for ; r.i < len(r.s) && r.s[r.i] != '"'; r.i++ {
		if r.s[r.i] == '\\' {
			r.i++
		}
	}
	if r.i >= len(r.s) {
		r.ok = false
		return ""
	}
	r.i++
	var out string
	if json.Unmarshal([]byte(r.s[start:r.i]), &out) != nil {
		r.ok = false
	}
	return out
}

func (r *reader) digits() string {
	start := r.i
	for r.i < len(r.s) && (r.s[r.i] >= '0' && r.s[r.i] <= '9' || r.s[r.i] == '-' && r.i == start) {
		r.i++
	}
	s := r.s[start:r.i]
	// JSON knows no leading zero; encoding/json shall say so.
	if d := s; len(d) > 1 && (d[0] == '0' || d[0] == '-' && d[1] == '0') {
		r.ok = false
	}
	return s
}

func (r *reader) int() int64 { return r.intOf(64) }

func (r *reader) intOf(bits int) int64 {
	n, err := strconv.ParseInt(r.digits(), 10, bits)
	r.ok = r.ok && err == nil
	return n
}

func (r *reader) uint() uint64 {
	n, err := strconv.ParseUint(r.digits(), 10, 64)
	r.ok = r.ok && err == nil
	return n
}
