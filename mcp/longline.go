package mcp

import (
	"bytes"
	"encoding/json"
)

// longCall finds the id of a call in a message too long to be kept, so that the host's own
// call gets the refusal. It is fed the message in parts and keeps next to nothing of it.
type longCall struct {
	depth             int
	inString, escaped bool
	key               bool   // the next string at the top is a name
	name              string // of the member whose value is being read
	text              []byte // of a name or of the id; longer ones are cut
	id                []byte
	method            bool // a call or a notification, not a response
}

// feed reads on. Only brackets, strings and the members at the top count.
func (c *longCall) feed(part []byte) {
	for _, b := range part {
		switch {
		case c.inString:
			c.inside(b)
		case b == '"':
			c.inString = true
			c.keep(b)
		case b == '{' || b == '[':
			c.depth++
			c.key = c.depth == 1 && b == '{'
		case b == '}' || b == ']':
			c.member()
			c.depth--
		case b == ',':
			c.member()
			c.key = c.depth == 1
		case b == ':' && c.depth == 1 && c.key:
			c.key, c.name, c.text = false, string(bytes.Trim(c.text, `"`)), nil
			c.method = c.method || c.name == "method"
		case b > ' ':
			c.keep(b)
		}
	}
}

func (c *longCall) inside(b byte) {
	c.keep(b)
	switch {
	case c.escaped:
		c.escaped = false
	case b == '\\':
		c.escaped = true
	case b == '"':
		c.inString = false
	}
}

// keep adds to the name or the id that is being read; one byte beyond the bound tells that it
// is too long.
func (c *longCall) keep(b byte) {
	if c.depth == 1 && (c.key || c.name == "id") && len(c.text) <= maxIDBytes {
		c.text = append(c.text, b)
	}
}

// member ends a member at the top.
func (c *longCall) member() {
	if c.depth == 1 && c.name == "id" {
		c.id = c.text
	}
	if c.depth == 1 {
		c.name, c.text = "", nil
	}
}

// answerTo is the id to refuse under, nil where the message was no call or its id unusable.
func (c *longCall) answerTo() json.RawMessage {
	if !c.method || len(c.id) == 0 || !json.Valid(c.id) || !validID(c.id) {
		return nil
	}
	return c.id
}
