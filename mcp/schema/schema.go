// Package schema is the small subset of JSON Schema that every host understands, built in Go
// so that schema and check share one set of named bounds. It exists beside the SDK's
// validator because a refusal must name the field, quote no value, and read sloppy but
// unambiguous input (a stringified array, a null for an absent member) leniently.
package schema

import (
	"bytes"
	"encoding/json"

	"webcodex/internal/fault"
)

// Schema is one closed, typed shape. Zero members are not emitted.
type Schema struct {
	Type        string // object, array, string, integer, boolean
	Description string
	Enum        []string
	Pattern     string
	MinLength   int // characters
	MaxLength   int // characters
	// MaxBytes is checked but not emitted: JSON Schema counts characters.
	MaxBytes int
	Min, Max *int64
	Items    *Schema
	MinItems int
	MaxItems int
	Props    []Prop
	// Prose marks a text that is only read: half of a surrogate pair in it becomes U+FFFD, where
	// any other string with one is refused.
	Prose bool
	// Free marks an object that takes any members (call_runtime_tool's arguments).
	Free bool
	// Terse objects are closed like any other and do not say so: each member of the envelope
	// stands in every tool of the list.
	Terse bool
	// Kind is the error kind of a missing, empty or out-of-bounds value, and for an object of a
	// member that it does not have; empty means invalid_arguments. A wrong type is
	// invalid_arguments always.
	Kind fault.Kind
	// Returned is the error kind of a text that cannot be one that this server made; a missing one
	// is an argument error like any other.
	Returned fault.Kind
	// Next is the step a refusal of a value out of bounds names, e.g. the tool for larger ones.
	Next string
}

// Prop is a member of an object; the order is the order shown.
type Prop struct {
	Name     string
	Required bool
	Schema   *Schema
}

// Object is a closed object.
func Object(props ...Prop) *Schema { return &Schema{Type: "object", Props: props} }

// Req is a required member.
func Req(name string, s *Schema) Prop { return Prop{name, true, s} }

// Opt is an optional member.
func Opt(name string, s *Schema) Prop { return Prop{name, false, s} }

// Str is a string of min to max characters; max 0: unbounded by schema.
func Str(desc string, min, max int) *Schema {
	return &Schema{Type: "string", Description: desc, MinLength: min, MaxLength: max}
}

// Enum is one of the values.
func Enum(desc string, values ...string) *Schema {
	return &Schema{Type: "string", Description: desc, Enum: values}
}

// Int is an integer from min to max.
func Int(desc string, min, max int64) *Schema {
	return &Schema{Type: "integer", Description: desc, Min: &min, Max: &max}
}

// Knob is an integer that is clamped, not refused (ruling 8): no bound in the schema.
func Knob(desc string) *Schema { return &Schema{Type: "integer", Description: desc} }

// Bool is a boolean.
func Bool(desc string) *Schema { return &Schema{Type: "boolean", Description: desc} }

// List is an array of min to max items.
func List(desc string, items *Schema, min, max int) *Schema {
	return &Schema{Type: "array", Description: desc, Items: items, MinItems: min, MaxItems: max}
}

// Bytes adds a byte bound beside the character bound.
func (s *Schema) Bytes(max int) *Schema { s.MaxBytes = max; return s }

// Fault names the error kind of a missing, empty or out-of-bounds value, for an object of an
// unknown member.
func (s *Schema) Fault(k fault.Kind) *Schema { s.Kind = k; return s }

// Opaque marks a text that this server made and the caller gives back. One that cannot be it is
// refused with the kind, as malformed or oversized (MSG-13).
func (s *Schema) Opaque(k fault.Kind) *Schema { s.Returned = k; return s }

// Hint names the step to take where a value is out of bounds (EXE-22).
func (s *Schema) Hint(next string) *Schema { s.Next = next; return s }

// ForReading marks a text as Prose.
func (s *Schema) ForReading() *Schema { s.Prose = true; return s }

// Match adds a pattern.
func (s *Schema) Match(re string) *Schema { s.Pattern = re; return s }

// Prop finds a member.
func (s *Schema) Prop(name string) (Prop, bool) {
	for _, p := range s.Props {
		if p.Name == name {
			return p, true
		}
	}
	return Prop{}, false
}

// MarshalJSON emits the schema, members in a fixed order.
func (s *Schema) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(name string, v any) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		n, _ := json.Marshal(name)
		b.Write(n)
		b.WriteByte(':')
		enc, _ := json.Marshal(v)
		b.Write(enc)
	}
	put("type", s.Type)
	if s.Description != "" {
		put("description", s.Description)
	}
	if len(s.Enum) > 0 {
		put("enum", s.Enum)
	}
	if s.Pattern != "" {
		put("pattern", s.Pattern)
	}
	for _, n := range []struct {
		name string
		v    int
	}{{"minLength", s.MinLength}, {"maxLength", s.MaxLength}, {"minItems", s.MinItems}, {"maxItems", s.MaxItems}} {
		if n.v > 0 {
			put(n.name, n.v)
		}
	}
	if s.Min != nil {
		put("minimum", *s.Min)
	}
	if s.Max != nil {
		put("maximum", *s.Max)
	}
	if s.Items != nil {
		put("items", s.Items)
	}
	if s.Type == "object" && !s.Free {
		s.emitObject(put)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (s *Schema) emitObject(put func(string, any)) {
	var props bytes.Buffer
	props.WriteByte('{')
	required := []string{}
	for i, p := range s.Props {
		if i > 0 {
			props.WriteByte(',')
		}
		n, _ := json.Marshal(p.Name)
		props.Write(n)
		props.WriteByte(':')
		enc, _ := json.Marshal(p.Schema)
		props.Write(enc)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	props.WriteByte('}')
	put("properties", json.RawMessage(props.Bytes()))
	if len(required) > 0 {
		put("required", required)
	}
	if !s.Terse {
		put("additionalProperties", false)
	}
}
