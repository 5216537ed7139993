package call

import (
	"encoding/json"

	"webcodex/eventlog/event"
)

// Envelope is what a request carries beside the tool's arguments. The edge took it off before
// the tool's own arguments were read: no tool ever sees it (REC-05). The zero value is a
// request without one. No member selects a target, grants a right or lasts longer than the
// request (REC-07, ACK-10).
type Envelope struct {
	// Record names the Session that keeps this call as evidence, a canonical id or a ~sN; empty:
	// none does.
	Record string
	// Field is what the edge calls Record, for refusals.
	Field string
	// Ack are messages that the caller says it has, AckRef stands for a set of them. Neither is
	// checked yet, and neither can be at fault (ACK-11).
	Ack    []event.MessageID
	AckRef string
	// Before are mutations that come before the tool, in this order; a refused one stops it.
	// After are made when the tool has succeeded.
	Before, After []Mutation
	// Context are the keys of the materials asked for, known or not.
	Context []string
	// Profile is the host's wish for the form of guidance; empty: none was told (PRO-03).
	Profile string
}

// Mutation is a tool call that travels with another one, under the same rules as if it came by
// itself (CTL-03).
type Mutation struct {
	// Slot is the member of the answer's control that tells of it; Kind is its name there.
	Slot, Kind string
	// At is where it stands in the request, for refusals.
	At string
	// Spec is the tool, nil where this server has none of the kind.
	Spec *Spec
	// Args were checked like those of a call of their own.
	Args json.RawMessage
	// Keep are the members of its output that the answer shows.
	Keep []string
}

// Envelope is what came with the call.
func (c *Call) Envelope() Envelope { return c.req.Envelope }

// Window is the caller's, empty where the host told none.
func (c *Call) Window() event.WindowID { return c.req.Window }

// Spec is the tool that runs.
func (c *Call) Spec() *Spec { return c.req.Spec }
