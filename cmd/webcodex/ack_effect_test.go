package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

// Whatever an acknowledgement says, and however wrong it is, the effect that it travels with happens
// as if it were not there, and nothing else comes of it: no message is resolved, no todo is done, no
// Session is a target.
//
// Covers: ACK-10, ACK-11
func TestAnAckHoldsUpNoEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	id := w.work(args{}).SessionID
	todo := must[beside](w, "post_session_message", args{"session_id": id, "kind": "todo", "message": "x", "requires_ack": true}).MessageID
	for name, env := range map[string]args{
		"none": {}, "good": {"ack": []string{string(todo)}}, "unknown": {"ack": []string{string(event.NewMessageID()), "", "x"}}, "no list": {"ack": 7},
		"no ref": {"ack_ref": "x"}, "long": {"ack_ref": strings.Repeat("x", 5000), "ack": strings.Split(strings.Repeat("x", 100), "")}, "object": {"ack_ref": args{}, "ack": args{"a": 1}},
	} {
		file := "made-" + strings.ReplaceAll(name, " ", "-")
		for _, recorder := range []event.SessionID{"", id} {
			if env = with(env); recorder != "" {
				env["record"] = recorder
			}
			before := w.observed(id)
			r := w.call("run_shell", args{"project": w.project, "command": "echo x >> " + file, "_wc": env})
			if r.IsError || !r.Success {
				t.Errorf("%s: %s", name, r.Text)
			}
			if n := w.observed(id) - before; n != 0 && recorder == "" || n != 2 && recorder != "" {
				t.Errorf("%s, recorded in %q: %d events", name, recorder, n)
			}
		}
		if b, err := os.ReadFile(filepath.Join(w.repo, file)); err != nil || string(b) != "x\nx\n" {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	v, err := w.srv.store.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := v.Board.Find(todo); m.Status != view.MessageOpen || m.Resolution != "" || v.Board.Len() != 1 || v.Core.Lifecycle != view.Active {
		t.Errorf("%+v", m)
	}
}
