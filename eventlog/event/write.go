package event

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// appendCommit writes the stored body.
func appendCommit(b []byte, c Commit, names []string) []byte {
	b = append(b, `{"v":`...)
	b = strconv.AppendInt(b, int64(c.Format), 10)
	b = appendString(append(b, `,"id":`...), string(c.ID))
	b = appendString(append(b, `,"agg":`...), c.Aggregate.String())
	b = strconv.AppendUint(append(b, `,"ver":`...), c.Version, 10)
	b = appendString(append(b, `,"prev":`...), c.Prev)
	b = append(b, `,"at":"`...)
	b = c.At.UTC().AppendFormat(b, TimeForm)
	b = append(b, `","actor":`...)
	b = actorPlan.append(b, reflect.ValueOf(c.Actor))
	if c.Invocation != "" {
		b = appendString(append(b, `,"inv":`...), string(c.Invocation))
	}
	b = appendString(append(b, `,"server":`...), string(c.Server))
	b = append(b, `,"events":[`...)
	for i, e := range c.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEvent(b, names[i], reflect.ValueOf(e))
	}
	return append(b, "]}"...)
}

func (p *plan) append(b []byte, v reflect.Value) []byte {
	b = append(b, '{')
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
		if (f.empty || f.zero) && fv.IsZero() || f.empty && f.value.kind == reflect.Slice && fv.Len() == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = f.value.append(append(b, f.key...), fv)
	}
	return append(b, '}')
}

func (t *value) append(b []byte, v reflect.Value) []byte {
	switch t.kind {
	case reflect.String:
		return appendString(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Struct:
		return t.sub.append(b, v)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return t.elem.append(b, v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return append(b, "null"...)
		}
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = t.elem.append(b, v.Index(i))
		}
		return append(b, ']')
	case reflect.Interface:
		return appendEvent(b, nameOf[v.Elem().Type()], v.Elem())
	default:
		return strconv.AppendInt(b, v.Int(), 10)
	}
}

// appendString writes a JSON string; anything that needs care is left to encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			quoted, _ := json.Marshal(s) // a string always can be
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// plain holds the bytes that stand for themselves in a JSON string of encoding/json.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x7f; c++ {
		t[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	t[0x7f] = true
	return t
}()
