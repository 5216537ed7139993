package conformance_test

import (
	"encoding/json"
	"slices"
)

// message is one of a board, as far as the stories look at it.
type message struct {
	ID          string  `json:"message_id"`
	Kind        string  `json:"kind"`
	Status      string  `json:"status"`
	Text        string  `json:"message"`
	ReplyTo     *string `json:"reply_to"`
	Author      *string `json:"author_session_id"`
	FirstAck    *string `json:"first_ack_observed_at"`
	ResolvedBy  *string `json:"resolved_by_message_id"`
	Completion  *string `json:"completion_id"`
	RequiresAck bool    `json:"requires_ack"`
}

// board is all that a board holds.
func (h *host) board(session string) []json.RawMessage {
	h.t.Helper()
	var out struct {
		Messages []json.RawMessage
		Total    int
	}
	h.must("list_session_messages", args{"session_id": session, "limit": 100}, beside{}, &out)
	if len(out.Messages) != out.Total {
		h.t.Fatalf("%d of %d messages", len(out.Messages), out.Total)
	}
	return out.Messages
}

// decoded reads messages, in their order.
func (h *host) decoded(raw []json.RawMessage) []message {
	h.t.Helper()
	var out []message
	for _, r := range raw {
		var m message
		outcome{output: r}.into(h, &m)
		out = append(out, m)
	}
	return out
}

// watcher follows a board with one observation token after another, and holds what it was sent
// against the board: nothing twice in the same state, nothing left out.
type watcher struct {
	h      *host
	on     string // the Session whose board it is
	record string // the Session that keeps the looks
	token  string
	state  map[string]string // of each message, as this observer knows it
	order  []string          // of the messages that were sent, by their newest change
}

// newWatcher establishes the baseline, which has no messages however many there are.
func newWatcher(h *host, on, record string) *watcher {
	h.t.Helper()
	w := &watcher{h: h, on: on, record: record, state: map[string]string{}}
	for _, raw := range h.board(on) {
		w.state[h.decoded([]json.RawMessage{raw})[0].ID] = string(raw)
	}
	if len(w.state) == 0 {
		h.t.Error("nothing is on the board that a baseline could repeat")
	}
	w.look("not_waited", args{"session_id": on})
	if len(w.order) > 0 {
		h.t.Errorf("%s: the baseline sends %v", h.name, w.order)
	}
	return w
}

// args of the next look.
func (w *watcher) args(wait int) args {
	a := args{"session_id": w.on, "after_observation_token": w.token}
	if wait > 0 {
		a["wait_secs"] = wait
	}
	return a
}

// look looks once.
func (w *watcher) look(ended string, a args) {
	w.h.t.Helper()
	w.take(ended, w.h.call("observe_session_messages", a, beside{record: w.record}))
}

// news are the ids of what came since the last look, without a wait.
func (w *watcher) news() []string {
	w.h.t.Helper()
	n := len(w.order)
	w.look("not_waited", w.args(0))
	return w.order[n:]
}

// until waits for changes until there is a message as it is asked for.
func (w *watcher) until(there func(message) bool) {
	w.h.t.Helper()
	for !slices.ContainsFunc(w.known(), there) {
		w.look("changed", w.args(30))
	}
}

// known are the messages as this observer knows them.
func (w *watcher) known() []message {
	w.h.t.Helper()
	var raw []json.RawMessage
	for _, s := range w.state {
		raw = append(raw, json.RawMessage(s))
	}
	return w.h.decoded(raw)
}

// take reads an answer.
func (w *watcher) take(ended string, o outcome) {
	w.h.t.Helper()
	var out struct {
		Messages []json.RawMessage
		Token    string `json:"observation_token"`
		HasMore  *bool  `json:"has_more"`
		Lost     *bool  `json:"history_lost"`
		Changed  *bool
		Wait     string `json:"wait_outcome"`
	}
	if o.into(w.h, &out); o.kind != "" || out.Messages == nil || out.Token == "" || len(out.Token) > 192 || out.HasMore == nil || *out.HasMore ||
		out.Lost == nil || *out.Lost || out.Changed == nil || *out.Changed != (len(out.Messages) > 0) || out.Wait != ended {
		w.h.t.Fatalf("%s observes %s, want a look that %s", w.h.name, o.output, ended)
	}
	w.token = out.Token
	for i, m := range w.h.decoded(out.Messages) {
		if w.state[m.ID] == string(out.Messages[i]) {
			w.h.t.Errorf("%s is sent again: %s", w.h.name, out.Messages[i])
		}
		w.state[m.ID] = string(out.Messages[i])
		w.order = append(w.order, m.ID)
	}
}

// whole checks that this observer knows the board exactly as it is.
func (w *watcher) whole() {
	w.h.t.Helper()
	all := w.h.board(w.on)
	for i, m := range w.h.decoded(all) {
		if w.state[m.ID] != string(all[i]) {
			w.h.t.Errorf("%s knows %s, the board has %s", w.h.name, w.state[m.ID], all[i])
		}
	}
	if len(all) != len(w.state) {
		w.h.t.Errorf("%s knows %d messages of %d", w.h.name, len(w.state), len(all))
	}
}
