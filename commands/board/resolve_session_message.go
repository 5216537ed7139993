package board

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// ResolveIn is the input of resolve_session_message.
type ResolveIn struct {
	SessionID  string  `json:"session_id"`
	MessageID  string  `json:"message_id"`
	Resolution *string `json:"resolution,omitempty"`
}

// ResolveOut is its output.
type ResolveOut struct {
	Message session.MessageView `json:"message"`
	Changed bool                `json:"changed"`
}

// ResolveMessage marks a message as dealt with, durably. What is so already is left alone.
var ResolveMessage = call.Spec{
	Name: "resolve_session_message", Scopes: []call.Scope{call.ScopeCollaborate}, Plane: call.PlaneSession, Class: call.Mutate,
	In: ResolveIn{}, Run: resolveMessage, Evidence: func(args json.RawMessage) event.Input {
		in := decoded[ResolveIn](args)
		if in.Resolution == nil {
			return evidence(in.MessageID, "", nil)
		}
		return evidence(in.MessageID, *in.Resolution, nil)
	},
}

func resolveMessage(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ResolveIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	if in.Resolution != nil {
		text, err := said("resolution", *in.Resolution)
		if err != nil {
			return call.Result{}, err
		}
		in.Resolution = &text
	}
	id := event.MessageID(in.MessageID)
	after, changed, err := decide(ctx, c, func(v view) ([]event.Event, error) {
		return DecideResolve(v.Core, v.Board, id, in.Resolution)
	})
	if err != nil {
		return call.Result{}, err
	}
	m, err := standing(c, after, id)
	return call.Result{Output: ResolveOut{Message: m, Changed: changed}}, err
}
