package board_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// world is a kernel on a real log with one Session.
type world struct {
	*calltest.Env
	t  testing.TB
	id event.SessionID
}

type args = map[string]any

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Env: calltest.New(t, nil), t: t}
	w.id = w.start()
	return w
}

func (w *world) start() event.SessionID {
	w.t.Helper()
	return calltest.Must[session.WorkOut](w.Env, &session.WorkOnProject, args{"project": calltest.Alpha.String(), "instruction": "work"}).SessionID
}

// on adds the Session to arguments that name none.
func (w *world) on(a args) args {
	out := args{"session_id": w.id}
	for k, v := range a {
		out[k] = v
	}
	return out
}

func (w *world) post(a args) board.PostOut {
	w.t.Helper()
	full := args{"kind": "note", "message": "a message"}
	for k, v := range a {
		full[k] = v
	}
	return calltest.Must[board.PostOut](w.Env, &board.PostMessage, w.on(full))
}

func (w *world) todo() event.MessageID {
	w.t.Helper()
	return w.post(args{"kind": "todo", "message": "do it"}).MessageID
}

func (w *world) assignment(id event.MessageID) board.Assignment {
	w.t.Helper()
	return calltest.Must[board.Assignment](w.Env, &board.GetAssignment, w.on(args{"message_id": id}))
}

// completion are the arguments that complete a todo as it is now.
func (w *world) completion(id event.MessageID, key string) args {
	w.t.Helper()
	return w.on(args{"message_id": id, "answer": "done", "completion_key": key, "expected_assignment_fence": *w.assignment(id).Fence})
}

func (w *world) observe(token string, more args) board.ObserveOut {
	w.t.Helper()
	a := w.on(more)
	if token != "" {
		a["after_observation_token"] = token
	}
	return calltest.Must[board.ObserveOut](w.Env, &board.ObserveMessages, a)
}

func (w *world) list(a args) board.ListOut {
	w.t.Helper()
	return calltest.Must[board.ListOut](w.Env, &board.ListMessages, w.on(a))
}

func (w *world) refuse(spec *call.Spec, a args, kind fault.Kind) *fault.Error {
	w.t.Helper()
	return w.Refused(calltest.Owner(), spec, w.on(a), kind)
}

func (w *world) close() {
	w.t.Helper()
	calltest.Must[session.CloseOut](w.Env, &session.CloseSession, w.on(nil))
}

func (w *world) board() view.Board {
	w.t.Helper()
	_, b, err := w.Store.LoadBoard(w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// window is another principal of the same authority group.
func window(char string) call.Principal {
	p := calltest.Owner()
	p.Actor.Principal = strings.Repeat(char, 64)
	return p
}

func outOf[Out any](t testing.TB, resp call.Response, err error) Out {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out Out
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) as(p call.Principal, spec *call.Spec, a args) (call.Response, error) {
	return w.CallAs(context.Background(), p, spec, w.on(a))
}
