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
	rest, _ := Take(raw, name)
	return rest
}

// Take is Without that also gives what the member held, nil where there was none.
func Take(raw json.RawMessage, name string) (rest, held json.RawMessage) {
	if !bytes.Contains(raw, []byte(name)) || !json.Valid(raw) {
		return raw, nil
	}
	obj := bytes.TrimSpace(raw)
	if obj = unwrap(obj, '{'); obj[0] != '{' {
		return raw, nil
	}
	members, err := split(obj, "")
	if err != nil {
		return raw, nil
	}
	held, ok := find(members, name)
	if !ok {
		return raw, nil
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
	return append(out, '}'), held
}

// quote is a member name as JSON; strconv would write escapes that JSON does not have.
func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(strconv.Quote(s))
	}
	return b
}
