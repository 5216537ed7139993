package schema

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
)

// Normalise checks args against the schema and gives them back in one spelling: members in
// schema order, nulls of optional members dropped, stringified arrays, objects, integers and
// booleans unwrapped where the schema wants one. Digits and strings stay byte for byte as
// sent. Absent arguments are an empty object.
//
// The error is a *fault.Error of kind invalid_arguments (or the Kind of the schema at fault)
// with the dotted path of the field. It quotes no value.
func (s *Schema) Normalise(args json.RawMessage) (json.RawMessage, error) {
	raw := bytes.TrimSpace(args)
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	if Depth(raw) > MaxDepth {
		return nil, refuse("", "the arguments are nested deeper than %d levels", MaxDepth)
	}
	if !json.Valid(raw) {
		return nil, refuse("", "the arguments are not valid JSON")
	}
	if !utf8.Valid(raw) {
		return nil, refuse("", "the arguments are not valid UTF-8")
	}
	var out bytes.Buffer
	out.Grow(len(raw))
	if err := s.value(&out, raw, ""); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// value writes the normal form of raw, which is valid JSON, at path.
func (s *Schema) value(out *bytes.Buffer, raw []byte, path string) error {
	switch s.Type {
	case "object":
		return s.object(out, raw, path)
	case "array":
		return s.array(out, raw, path)
	case "string":
		return s.text(out, raw, path)
	case "integer":
		return s.integer(out, raw, path)
	case "boolean":
		return s.boolean(out, raw, path)
	}
	return fault.New(fault.Internal, "the schema of this tool has an unknown type").WithField(path)
}

func (s *Schema) object(out *bytes.Buffer, raw []byte, path string) error {
	raw = unwrap(raw, '{')
	if raw[0] != '{' {
		return refuse(path, "%s must be an object", named(path))
	}
	members, err := split(raw, path)
	if err != nil {
		return err
	}
	if s.Free {
		return json.Compact(out, raw)
	}
	for _, m := range members {
		if _, ok := s.Prop(m.name); !ok {
			return s.unknown(join(path, m.name), path)
		}
	}
	out.WriteByte('{')
	first := true
	for _, p := range s.Props {
		v, ok := find(members, p.Name)
		if !ok || string(v) == "null" {
			if p.Required {
				at := join(path, p.Name)
				return p.Schema.amiss(reasonMissing, at, "%s is required", named(at))
			}
			continue
		}
		if !first {
			out.WriteByte(',')
		}
		first = false
		out.WriteString(strconv.Quote(p.Name))
		out.WriteByte(':')
		if err := p.Schema.value(out, v, join(path, p.Name)); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

// unknown refuses a member that the schema at path does not have and lists those it has.
func (s *Schema) unknown(at, path string) error {
	names := make([]string, len(s.Props))
	for i, p := range s.Props {
		names[i] = p.Name
	}
	where := "this tool"
	if path != "" {
		where = named(path)
	}
	e := refuse(at, "%s is not a field of %s", named(at), where)
	if s.Kind != "" {
		e.Kind = s.Kind
	}
	if len(names) == 0 {
		return e.WithNext("leave it out; %s takes no fields", where)
	}
	return e.WithNext("leave it out; the fields are %s", strings.Join(names, ", "))
}

func (s *Schema) array(out *bytes.Buffer, raw []byte, path string) error {
	raw = unwrap(raw, '[')
	if raw[0] != '[' {
		return refuse(path, "%s must be an array", named(path))
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return refuse(path, "%s could not be read as an array", named(path))
	}
	if len(items) < s.MinItems {
		return s.broken(path, "%s must have at least %d items", named(path), s.MinItems)
	}
	if s.MaxItems > 0 && len(items) > s.MaxItems {
		return s.broken(path, "%s must have at most %d items", named(path), s.MaxItems)
	}
	out.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			out.WriteByte(',')
		}
		at := path + "[" + strconv.Itoa(i) + "]"
		if string(item) == "null" {
			return refuse(at, "%s must not be null", named(at))
		}
		if err := s.Items.value(out, item, at); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

// Reason codes of values whose schema names its own error kind.
const (
	reasonMissing = "missing"
	reasonEmpty   = "empty"
	reasonLong    = "too_long"
)

// Reason codes of opaque texts.
const (
	reasonMalformed = "malformed"
	reasonOversized = "oversized"
)

// amiss is broken for a value whose kind of refusal has reason codes.
func (s *Schema) amiss(reason, path, format string, args ...any) error {
	e := s.broken(path, format, args...)
	switch {
	case s.Returned != "" && reason != reasonMissing:
		e.Kind, e.Reason = s.Returned, reasonMalformed
		if reason == reasonLong {
			e.Reason = reasonOversized
		}
	case s.Kind != "" && s.Type != "object":
		e.WithReason(reason)
	}
	return e
}

// broken refuses a missing or out-of-bounds value with the kind that the schema declares.
func (s *Schema) broken(path, format string, args ...any) *fault.Error {
	e := refuse(path, format, args...)
	if s.Kind != "" && s.Type != "object" {
		e.Kind = s.Kind
	}
	if s.Next != "" {
		e.WithNext("%s", s.Next)
	}
	return e
}

func refuse(path, format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidArguments, format, args...).WithField(path)
}

// named is how a sentence calls the value at path.
func named(path string) string {
	if path == "" {
		return "the argument object"
	}
	return path
}

// join appends a member name to a path. Names of the schema are short words; any other name
// is the caller's, so it is cut to what can be a field name.
func join(path, name string) string {
	name = clean(name)
	if path == "" {
		return name
	}
	if len(path)+1+len(name) > maxFieldBytes {
		return path
	}
	return path + "." + name
}

func clean(name string) string {
	if name == "" || len(name) > maxNameBytes {
		return "(unreadable name)"
	}
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '-' && c != '.' && c != '$' && c != '/' {
			return "(unreadable name)"
		}
	}
	return name
}
