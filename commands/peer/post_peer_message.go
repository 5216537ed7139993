package peer

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/internal/token"
)

// Domains of what is stored in place of a caller's key, and of what came under it. They are
// none of a board's: the same key there is another message (MSG-45).
const (
	deliveryDomain = "webcodex.peer-message-delivery.v1"
	payloadDomain  = "webcodex.peer-message-payload.v1"
)

// PostIn is the input of post_peer_message.
type PostIn struct {
	PeerID      string  `json:"peer_id"`
	Message     string  `json:"message"`
	Priority    string  `json:"priority,omitempty"`
	RequiresAck bool    `json:"requires_ack,omitempty"`
	DeliveryKey *string `json:"delivery_key,omitempty"`
}

// PostOut is its output.
type PostOut struct {
	MessageID event.MessageID `json:"message_id"`
	// Replayed tells that the delivery key's message was there already.
	Replayed bool `json:"replayed"`
}

// PostMessage writes to another window of the same principal.
var PostMessage = call.Spec{
	Name: "post_peer_message", Scopes: []call.Scope{call.ScopeCollaborate}, Plane: call.PlaneRuntime, Class: call.Mutate,
	In: PostIn{}, Run: postMessage, Evidence: func(args json.RawMessage) event.Input {
		var in PostIn
		_ = json.Unmarshal(args, &in)
		out := event.Input{TextBytes: len(in.Message)}
		if id := event.PeerID(in.PeerID); id.Valid() {
			out.Target = string(id)
		}
		return out
	},
}

func postMessage(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[PostIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if c.Windows() == nil {
		return call.Result{}, fault.New(fault.Unavailable, "this server keeps no peers")
	}
	p, err := in.post(c.Principal.Actor.Principal, c.Window())
	if err != nil {
		return call.Result{}, err
	}
	p.ID = event.NewMessageID()
	out := PostOut{MessageID: p.ID}
	_, err = c.Decide(ctx, event.WindowAggregate(p.Principal), func(now time.Time) ([]event.Event, error) {
		first, events, err := DecidePost(c.Windows().Book(p.Principal).At(now), p)
		if first != "" {
			out = PostOut{first, true}
		}
		return events, err
	})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: out}, nil
}

// post is the message as it is stored, but for its id: redacted, within bounds, its key hashed
// for the window that sent it.
func (in PostIn) post(principal string, from event.WindowID) (p Post, err error) {
	switch n := utf8.RuneCountInString(in.Message); {
	case strings.TrimSpace(in.Message) == "":
		return p, fault.New(fault.InvalidMessage, "message must say something").WithField("message").WithReason("empty")
	case n > MaxText:
		return p, fault.New(fault.InvalidMessage, "message has at most %d characters", MaxText).WithField("message").WithReason("too_long").
			WithNext("shorten it; put long material into files")
	}
	p = Post{Principal: principal, From: from, Peer: event.PeerID(in.PeerID), Text: redact.Text(in.Message, MaxText),
		Priority: event.Priority(in.Priority), RequiresAck: in.RequiresAck}
	switch p.Priority {
	case "":
		p.Priority = event.PriorityNormal
	case event.PriorityLow, event.PriorityNormal, event.PriorityHigh:
	default:
		return p, fault.New(fault.InvalidArguments, "priority must be one of low, normal, high").WithField("priority")
	}
	if in.DeliveryKey == nil {
		return p, nil
	}
	if n := utf8.RuneCountInString(*in.DeliveryKey); n == 0 || n > MaxKey {
		return p, fault.New(fault.InvalidArguments, "delivery_key has 1 to %d characters", MaxKey).WithField("delivery_key")
	}
	p.Key = token.Digest(deliveryDomain, principal, string(from), *in.DeliveryKey)
	p.Payload = token.Digest(payloadDomain, string(p.Peer), p.Text, string(p.Priority), strconv.FormatBool(p.RequiresAck))
	return p, nil
}
