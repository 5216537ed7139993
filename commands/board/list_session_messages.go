package board

import (
	"context"
	"slices"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// ListIn is the input of list_session_messages. Filters hold together.
type ListIn struct {
	SessionID string `json:"session_id"`
	MessageID string `json:"message_id,omitempty"`
	ReplyTo   string `json:"reply_to,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Status    string `json:"status,omitempty"`
	Offset    int    `json:"offset,omitempty"`
	Limit     *int   `json:"limit,omitempty"`
}

// ListOut is its output, the newest message first.
type ListOut struct {
	// Total is of the retained messages that the filters take.
	Total      int                   `json:"total"`
	Returned   int                   `json:"returned"`
	Offset     int                   `json:"offset"`
	Limit      int                   `json:"limit"`
	Truncated  bool                  `json:"truncated"`
	NextOffset *int                  `json:"next_offset"`
	Messages   []session.MessageView `json:"messages"`
}

// ListMessages pages through the retained messages of a Session's board.
var ListMessages = call.Spec{
	Name: "list_session_messages", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: ListIn{}, Run: listMessages,
}

func listMessages(_ context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ListIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	if err := in.check(); err != nil {
		return call.Result{}, err
	}
	v, err := read(c)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: in.page(v.Core.ID, v.Board)}, nil
}

func (in ListIn) check() error {
	if in.Kind != "" {
		if _, err := kindOf(in.Kind); err != nil {
			return err
		}
	}
	switch session.MessageStatus(in.Status) {
	case "", session.MessageOpen, session.MessageDone:
		return nil
	}
	return fault.New(fault.InvalidArguments, "status must be one of open, resolved").WithField("status")
}

func (in ListIn) wants(m *session.Message) bool {
	return (in.MessageID == "" || m.ID == event.MessageID(in.MessageID)) && (in.ReplyTo == "" || m.ReplyTo == event.MessageID(in.ReplyTo)) &&
		(in.Kind == "" || m.Kind == event.MessageKind(in.Kind)) && (in.Status == "" || m.Status == session.MessageStatus(in.Status))
}

// page is pure; what is posted between two pages moves the second by as much.
func (in ListIn) page(id event.SessionID, b session.Board) ListOut {
	var all []*session.Message
	for _, m := range slices.Backward(b.Messages()) {
		if in.wants(m) {
			all = append(all, m)
		}
	}
	out := ListOut{Total: len(all), Offset: max(in.Offset, 0), Limit: clamp(in.Limit, ListLimit, MaxListLimit)}
	all = all[min(out.Offset, len(all)):]
	all = all[:min(out.Limit, len(all))]
	out.Messages = shown(id, all)
	out.Returned = len(out.Messages)
	if next := out.Offset + out.Returned; next < out.Total && out.Returned > 0 {
		out.Truncated, out.NextOffset = true, &next
	}
	return out
}

// shown are the messages that one answer holds: at least one where there is one.
func shown(id event.SessionID, all []*session.Message) []session.MessageView {
	out, room := []session.MessageView{}, MaxPageBytes
	for _, m := range all {
		v := m.Show(id)
		if room -= sizeOf(v); room < 0 && len(out) > 0 {
			break
		}
		out = append(out, v)
	}
	return out
}

// clamp gives the effective value of an optional limit: def when absent, else 1..most.
func clamp(limit *int, def, most int) int {
	if limit == nil {
		return def
	}
	return min(max(*limit, 1), most)
}
