package mcp

import (
	"strings"

	"webcodex/commands/material"
	"webcodex/mcp/schema"
)

// explained is the envelope with words: once in the manifest, where tools/list has it in every
// tool without any.
var explained = explain()

func explain() *schema.Schema {
	s := envelopeSchema(true)
	s.Description = "Optional member " + envelopeName + " beside the arguments of any tool. It is for this call alone: nothing of it is remembered."
	words := map[string]string{
		"record":  "Session (wc_sess_… or ~sN) that also keeps this call as evidence. It never changes what the call works on.",
		"ack":     "Ids of messages that you have: their text is left out of this answer. Resolves nothing.",
		"ack_ref": "session_attention.ack_ref of an earlier answer: stands for all that was acknowledged and shown there.",
		"reply":   "Posts an answer to a message, on the recorder's board or that of the Session the call names; before the tool, which is not called where it is refused.",
		"resolve": "Marks a message as dealt with, likewise.",
		"context": "Materials to add to the answer, read after the tool's effect: " + strings.Join(material.Keys(), ", ") + ".",
		"control": "One mutation before the tool, which it stops where it is refused, and one after its success, reported beside the result. Each takes the arguments of the tool of that name: " + stands() + ".",
	}
	props := make([]schema.Prop, 0, len(s.Props))
	for _, p := range s.Props {
		with := *p.Schema
		with.Description = words[p.Name]
		props = append(props, schema.Prop{Name: p.Name, Required: p.Required, Schema: &with})
	}
	s.Props = props
	return s
}

// stands says which tool each kind of control stands for.
func stands() string {
	var out []string
	for _, k := range controls {
		if k.tool != "" {
			out = append(out, k.kind+" = "+k.tool)
		}
	}
	return strings.Join(out, ", ")
}
