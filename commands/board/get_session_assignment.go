package board

import (
	"context"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
)

// AssignmentIn is the input of get_session_assignment.
type AssignmentIn struct {
	SessionID string `json:"session_id"`
	MessageID string `json:"message_id"`
}

// GetAssignment reads a todo with its replies and the fence under which it can be completed.
var GetAssignment = call.Spec{
	Name: "get_session_assignment", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: AssignmentIn{}, Run: getAssignment,
}

func getAssignment(_ context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[AssignmentIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	v, err := read(c)
	if err != nil {
		return call.Result{}, err
	}
	todo, ok := v.Board.Find(event.MessageID(in.MessageID))
	if !ok {
		return call.Result{}, unknownMessage("message_id")
	}
	return call.Result{Output: fencingOf(c).assign(v.Core, v.Board, todo)}, nil
}
