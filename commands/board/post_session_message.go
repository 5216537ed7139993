package board

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// PostIn is the input of post_session_message.
type PostIn struct {
	SessionID   string   `json:"session_id"`
	Kind        string   `json:"kind"`
	Message     string   `json:"message"`
	Tags        []string `json:"tags,omitempty"`
	ReplyTo     string   `json:"reply_to,omitempty"`
	Priority    string   `json:"priority,omitempty"`
	RequiresAck bool     `json:"requires_ack,omitempty"`
	Supersedes  string   `json:"supersedes,omitempty"`
	DeliveryKey *string  `json:"delivery_key,omitempty"`
}

// PostOut is its output.
type PostOut struct {
	MessageID event.MessageID `json:"message_id"`
	// Replayed tells that the delivery key's message was there already, and is as given here.
	Replayed bool                `json:"replayed"`
	Message  session.MessageView `json:"message"`
}

// PostMessage puts a message on a Session's board. The call leaves only its own event
// (ruling 1), and none where its delivery key was used for the same message before.
var PostMessage = call.Spec{
	Name: "post_session_message", Scopes: []call.Scope{call.ScopeCollaborate}, Plane: call.PlaneSession, Class: call.Mutate,
	In: PostIn{}, Run: postMessage, Evidence: func(args json.RawMessage) event.Input {
		in := decoded[PostIn](args)
		return evidence(in.ReplyTo, in.Message, in.Tags)
	},
}

func postMessage(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[PostIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	p, err := in.post(c.Session.ID)
	if err != nil {
		return call.Result{}, err
	}
	p.ID, p.Author = event.NewMessageID(), c.Author()
	var first *session.Message
	after, _, err := decide(ctx, c, func(v view) (events []event.Event, err error) {
		first, events, err = DecidePost(v.Core, v.Board, p)
		return events, err
	})
	if err != nil {
		return call.Result{}, err
	}
	out := PostOut{MessageID: p.ID}
	if first != nil {
		out.MessageID, out.Replayed = first.ID, true
	}
	out.Message, err = standing(c, after, out.MessageID)
	return call.Result{Output: out}, err
}

// post is the message as it is stored, but for its id and its author.
func (in PostIn) post(id event.SessionID) (p Post, err error) {
	p.RequiresAck = in.RequiresAck
	if p.Kind, err = kindOf(in.Kind); err != nil {
		return p, err
	}
	if p.Text, err = said("message", in.Message); err != nil {
		return p, err
	}
	if p.Tags, err = taggedWith(in.Tags); err != nil {
		return p, err
	}
	if p.Priority, err = priorityOf(in.Priority); err != nil {
		return p, err
	}
	// An id of no message's form is refused where it is looked for, behind the lifecycle and the
	// replay; nothing else of it is kept.
	p.ReplyTo, p.Supersedes = event.MessageID(in.ReplyTo), event.MessageID(in.Supersedes)
	if in.DeliveryKey != nil {
		if p.Key, err = keyed("delivery_key", deliveryDomain, id, *in.DeliveryKey); err != nil {
			return p, err
		}
		p.Payload = p.payload()
	}
	return p, nil
}
