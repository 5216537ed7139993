package mcp

import (
	"webcodex/commands/board"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

// Arguments that several tools of the board share.
var (
	messageIDArg   = schema.Str("wc_msg_…", 1, 64)
	messageTagsArg = schema.List("Labels.", schema.Str("", 1, board.MaxTagChars).Fault(fault.InvalidMessage).ForReading(), 0, board.MaxTags).Fault(fault.InvalidMessage)
	priorityArg    = schema.Enum("Default: normal.", string(event.PriorityLow), string(event.PriorityNormal), string(event.PriorityHigh))
	messageKindArg = func(desc string) *schema.Schema {
		var kinds []string
		for _, k := range event.MessageKinds() {
			kinds = append(kinds, string(k))
		}
		return schema.Enum(desc, kinds...)
	}
)

var postSessionMessage = Tool{
	Spec:  &board.PostMessage,
	Title: "Post a Session message",
	Description: "Post a message to a Workflow Session's board, for other windows and people: a note, a decision, a todo for somebody. " +
		"With a delivery_key a repeated call posts once.",
	Category: "board", Direct: true,
	Input: schema.Object(
		schema.Req("session_id", targetSessionArg),
		schema.Req("kind", messageKindArg("")),
		schema.Req("message", schema.Str("Text.", 1, board.MaxText).Fault(fault.InvalidMessage).ForReading()),
		schema.Opt("tags", messageTagsArg),
		schema.Opt("reply_to", schema.Str("Message that this answers.", 1, 64)),
		schema.Opt("priority", priorityArg),
		schema.Opt("requires_ack", schema.Bool("Shown until acknowledged or resolved.")),
		schema.Opt("supersedes", schema.Str("Message of the same kind that this replaces.", 1, 64)),
		schema.Opt("delivery_key", schema.Str("Your own key, for retries.", 1, board.MaxKey)),
	),
}
