package board

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// CompleteIn is the input of complete_session_message.
type CompleteIn struct {
	SessionID     string   `json:"session_id"`
	MessageID     string   `json:"message_id"`
	Answer        string   `json:"answer"`
	CompletionKey string   `json:"completion_key"`
	Fence         string   `json:"expected_assignment_fence"`
	Tags          []string `json:"tags,omitempty"`
	Priority      string   `json:"priority,omitempty"`
}

// CompleteOut is its output.
type CompleteOut struct {
	AnswerMessageID event.MessageID    `json:"answer_message_id"`
	CompletionID    event.CompletionID `json:"completion_id"`
	// Replayed tells that this very completion was there already.
	Replayed bool                `json:"replayed"`
	Todo     session.MessageView `json:"todo"`
	// Answer is null where retention took it.
	Answer *session.MessageView `json:"answer"`
}

// CompleteMessage answers a todo and resolves it, in one event, on exactly the assignment that
// the caller has read.
var CompleteMessage = call.Spec{
	Name: "complete_session_message", Scopes: []call.Scope{call.ScopeCollaborate}, Plane: call.PlaneSession, Class: call.Mutate,
	In: CompleteIn{}, Run: completeMessage, Evidence: func(args json.RawMessage) event.Input {
		in := decoded[CompleteIn](args)
		return evidence(in.MessageID, in.Answer, in.Tags)
	},
}

func completeMessage(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[CompleteIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	done, err := in.complete(c.Session.ID)
	if err != nil {
		return call.Result{}, err
	}
	done.Answer, done.Completion, done.Author = event.NewMessageID(), event.NewCompletionID(), c.Author()
	f := fencingOf(c)
	var first *session.Message
	after, _, err := decide(ctx, c, func(v view) (events []event.Event, err error) {
		first, events, err = DecideComplete(v.Core, v.Board, done, func(todo *session.Message) Assignment {
			return f.assign(v.Core, v.Board, todo)
		})
		return events, err
	})
	if err != nil {
		return call.Result{}, uncertain(fault.As(err))
	}
	return completion(c, after, done.Todo, first != nil)
}

// complete is the answer as it is stored, but for its ids and its author.
func (in CompleteIn) complete(id event.SessionID) (d Complete, err error) {
	d.Todo, d.Fence = event.MessageID(in.MessageID), in.Fence
	if err := fenced(in.Fence); err != nil {
		return d, err
	}
	if d.Text, err = said("answer", in.Answer); err != nil {
		return d, err
	}
	if d.Tags, err = taggedWith(in.Tags); err != nil {
		return d, err
	}
	if d.Priority, err = priorityOf(in.Priority); err != nil {
		return d, err
	}
	if d.Key, err = keyed("completion_key", completionDomain, id, in.CompletionKey); err != nil {
		return d, err
	}
	d.Payload = d.payload()
	return d, nil
}

// completion shows how a todo was completed, now or before.
func completion(c *call.Call, b session.Board, todo event.MessageID, replayed bool) (call.Result, error) {
	m, ok := b.Find(todo)
	if !ok {
		return call.Result{}, unfolded()
	}
	out := CompleteOut{AnswerMessageID: m.ResolvedBy, CompletionID: m.Completion, Replayed: replayed, Todo: m.Show(c.Session.ID)}
	if a, ok := b.Find(m.ResolvedBy); ok {
		answer := a.Show(c.Session.ID)
		out.Answer = &answer
	}
	return call.Result{Output: out}, nil
}

// uncertain is what a caller is told where the commit was sent and nobody can tell whether it
// stands: the same key will. Every other refusal stays as it is, that of a log that takes
// nothing any more too.
func uncertain(cause *fault.Error) error {
	if cause.Kind != fault.PersistenceUncertain || !cause.StateChanged {
		return cause
	}
	f := fault.Wrap(cause, fault.CompletionUncertain, "whether the completion is stored is not known").
		WithReason(cause.Reason).WithNext("call again with the same completion_key and answer when the server is back: it tells how it ended")
	f.FailureKind, f.StateChanged = string(fault.OutcomeUnknown), true
	return f
}
