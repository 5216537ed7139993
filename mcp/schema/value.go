package schema

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

type member struct {
	name string
	raw  json.RawMessage
}

func find(ms []member, name string) (json.RawMessage, bool) {
	for _, m := range ms {
		if m.name == name {
			return m.raw, true
		}
	}
	return nil, false
}

// split lists the members of an object as sent. A name given twice is refused: readers
// disagree about which one counts, so a check and a handler could see different values.
func split(raw []byte, path string) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, refuse(path, "%s could not be read as an object", named(path))
	}
	var ms []member
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, refuse(path, "%s could not be read as an object", named(path))
		}
		if seen[name] {
			at := join(path, name)
			return nil, refuse(at, "%s is given twice", named(at))
		}
		seen[name] = true
		m := member{name: name}
		if err := dec.Decode(&m.raw); err != nil {
			return nil, refuse(path, "%s could not be read as an object", named(path))
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// unwrap reads a JSON string that holds one JSON value opening with the given byte; some
// hosts send arrays and objects that way. Anything else comes back unchanged.
func unwrap(raw []byte, open byte) []byte {
	inner, ok := inside(raw)
	if !ok || len(inner) == 0 || inner[0] != open || Depth(inner) > MaxDepth || !json.Valid(inner) {
		return raw
	}
	return inner
}

// inside is the trimmed content of a JSON string.
func inside(raw []byte) ([]byte, bool) {
	if raw[0] != '"' {
		return nil, false
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil || loneSurrogate(raw) {
		return nil, false
	}
	return []byte(strings.TrimSpace(text)), true
}

func (s *Schema) text(out *bytes.Buffer, raw []byte, path string) error {
	if raw[0] != '"' {
		return refuse(path, "%s must be a string", named(path))
	}
	var text string
	err := json.Unmarshal(raw, &text)
	half := err == nil && loneSurrogate(raw)
	if err != nil || half && !s.Prose {
		return refuse(path, "%s holds half of a surrogate pair, which is no character", named(path))
	}
	if half {
		if raw, err = json.Marshal(text); err != nil {
			return refuse(path, "%s could not be read", named(path))
		}
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		return refuse(path, "%s must be one of %s", named(path), strings.Join(s.Enum, ", "))
	}
	n := utf8.RuneCountInString(text)
	switch {
	case n < s.MinLength && s.MinLength == 1:
		return s.amiss(reasonEmpty, path, "%s must not be empty", named(path))
	case n < s.MinLength:
		return s.broken(path, "%s must have at least %d characters", named(path), s.MinLength)
	case s.MaxLength > 0 && n > s.MaxLength:
		return s.amiss(reasonLong, path, "%s must have at most %d characters", named(path), s.MaxLength)
	case s.MaxBytes > 0 && len(text) > s.MaxBytes:
		return s.amiss(reasonLong, path, "%s must have at most %d bytes of UTF-8", named(path), s.MaxBytes)
	}
	if s.Pattern != "" && !compiled(s.Pattern).MatchString(text) {
		return s.amiss("", path, "%s does not have the form %s", named(path), s.Pattern)
	}
	out.Write(raw)
	return nil
}

// loneSurrogate reports an escape that the decoder would silently turn into U+FFFD: text that
// goes into a file must not change on its way.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		r := unit(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' ||
			utf16.DecodeRune(r, unit(raw[i+3:])) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

func unit(hex []byte) rune {
	if len(hex) < 4 {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(hex[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

func (s *Schema) integer(out *bytes.Buffer, raw []byte, path string) error {
	if inner, ok := inside(raw); ok && len(inner) > 0 && inner[0] != '"' && json.Valid(inner) {
		raw = inner
	}
	n, ok := whole(raw)
	if !ok {
		return refuse(path, "%s must be an integer", named(path))
	}
	if s.Min != nil && n.Cmp(big.NewInt(*s.Min)) < 0 {
		return s.broken(path, "%s must be at least %d", named(path), *s.Min)
	}
	if s.Max != nil && n.Cmp(big.NewInt(*s.Max)) > 0 {
		return s.broken(path, "%s must be at most %d", named(path), *s.Max)
	}
	if !n.IsInt64() {
		return s.broken(path, "%s does not fit into 64 bits", named(path))
	}
	out.WriteString(n.String())
	return nil
}

// whole reads a JSON number that has an integer value, exactly: no float is involved.
func whole(raw []byte) (*big.Int, bool) {
	if len(raw) > maxNumberBytes || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return nil, false
	}
	if n, ok := new(big.Int).SetString(string(raw), 10); ok {
		return n, true
	}
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		exp, err := strconv.Atoi(string(raw[i+1:]))
		if err != nil || exp > maxNumberBytes || exp < -maxNumberBytes {
			return nil, false
		}
	}
	r, ok := new(big.Rat).SetString(string(raw))
	if !ok || !r.IsInt() {
		return nil, false
	}
	return r.Num(), true
}

func (s *Schema) boolean(out *bytes.Buffer, raw []byte, path string) error {
	if inner, ok := inside(raw); ok {
		raw = inner
	}
	if string(raw) != "true" && string(raw) != "false" {
		return refuse(path, "%s must be true or false", named(path))
	}
	out.Write(raw)
	return nil
}

var patterns sync.Map // pattern → *regexp.Regexp

// compiled caches patterns. They are constants of the catalogue; a bad one panics in the
// first test that lists the tools.
func compiled(p string) *regexp.Regexp {
	if re, ok := patterns.Load(p); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(p)
	patterns.Store(p, re)
	return re
}
