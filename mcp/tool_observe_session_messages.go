package mcp

import (
	"webcodex/commands/board"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

var observeSessionMessages = Tool{
	Spec:  &board.ObserveMessages,
	Title: "Observe a Session's messages",
	Description: "Follow a Workflow Session's board. First call: only an observation_token, no messages. With it: messages that " +
		"changed since, as they are now; wait_secs waits for one. history_lost: read the board again with list_session_messages. " +
		"What you observe is not acknowledged, and others are not told.",
	Category: "board", Idempotent: true,
	Input: schema.Object(
		schema.Req("session_id", targetSessionArg),
		schema.Opt("after_observation_token", schema.Str("observation_token of the last look.", 1, board.MaxToken).
			Opaque(fault.InvalidObservation).Hint("call observe_session_messages without a token for a new one")),
		schema.Opt("wait_secs", schema.Int("Seconds to wait for a change; only with a token.", 1, board.MaxWaitSecs)),
		schema.Opt("limit", schema.Knob("Messages of one look, up to 100 and as many as fit; default 50.")),
	),
}
