package schema

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Without gives an object back without the named member, every other byte of its members as
// sent. Anything that is not an object, or that reads two ways, comes back unchanged for
// Normalise to judge.
func Without(raw json.RawMessage, name string) json.RawMessage {
	if !bytes.Contains(raw, []byte(name)) || !json.Valid(raw) {
		return raw
	}
	obj := bytes.TrimSpace(raw)
	if obj = unwrap(obj, '{'); obj[0] != '{' {
		return raw
	}
	members, err := split(obj, "")
	if err != nil {
		return raw
	}
	if _, ok := find(members, name); !ok {
		return raw
	}
	out := make([]byte, 0, len(obj))
	for _, m := range members {
		if m.name == name {
			continue
		}
		sep := byte(',')
		if len(out) == 0 {
			sep = '{'
		}
		out = append(out, sep)
		out = append(out, quote(m.name)...)
		out = append(out, ':')
		out = append(out, m.raw...)
	}
	if len(out) == 0 {
		out = append(out, '{')
	}
	return append(out, '}')
}

// quote is a member name as JSON; strconv would write escapes that JSON does not have.
func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(strconv.Quote(s))
	}
	return b
}
