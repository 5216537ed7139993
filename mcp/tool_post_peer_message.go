package mcp

import (
	"webcodex/commands/peer"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

var postPeerMessage = Tool{
	Spec:  &peer.PostMessage,
	Title: "Write to another window",
	Description: "Post a short message to another window of the same account, by the peer_id that peer_awareness or peer_messages showed. " +
		"It comes beside a later answer there and is kept for a day at most; durable work belongs on a Session's board. With a delivery_key a repeated call posts once.",
	Category: "board",
	Input: schema.Object(
		schema.Req("peer_id", schema.Str("wc_peer_…", 1, 64)),
		schema.Req("message", schema.Str("Text.", 1, peer.MaxText).Fault(fault.InvalidMessage).ForReading()),
		schema.Opt("priority", priorityArg),
		schema.Opt("requires_ack", schema.Bool("Shown with each answer to a request that does not acknowledge it.")),
		schema.Opt("delivery_key", schema.Str("Your own key, for retries.", 1, peer.MaxKey)),
	),
}
