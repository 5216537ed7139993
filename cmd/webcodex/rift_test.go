package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"webcodex/commands/session"
	"webcodex/eventlog/event"
)

// resumed asks a server for the Session behind a ref, and starts another one there.
func resumed(t *testing.T, srv *child, project, ref string) (kind string, id event.SessionID, next session.WorkOut) {
	t.Helper()
	window, err := dialWindow(t.Context(), srv.ready.MCPURL, srv.ready.Token)
	if err != nil {
		t.Fatal(err)
	}
	defer window.close()
	ask := func(a args) (out session.WorkOut, kind string) {
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		res, err := window.call(t.Context(), "work_on_project", raw)
		if err != nil {
			t.Fatal(err)
		}
		if res.IsError {
			var refusal struct {
				Kind string `json:"error_kind"`
			}
			if err := res.Decode(&refusal); err != nil || refusal.Kind == "" {
				t.Fatalf("%s: %v", res.Text, err)
			}
			return out, refusal.Kind
		}
		if err := res.Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out, ""
	}
	next, kind = ask(args{"project": project, "instruction": "another"})
	if kind != "" || next.SessionRef == "" {
		t.Fatalf("no Session begins: %s %+v", kind, next)
	}
	old, kind := ask(args{"session_id": ref, "instruction": "go on"})
	return kind, old.SessionID, next
}

// After a restore, and after an unclean stop that took commits, a ref of before leads to its own
// Session or to none, and numbers that may have been given before are not given again.
//
// Covers: SES-11, NEG-06
func TestRefsOfAnotherHistoryLeadToNoOtherSession(t *testing.T) {
	t.Parallel()
	t.Run("restored", func(t *testing.T) {
		w := newWorld(t, "process")
		kept, copied, data := w.work(args{}), filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "data")
		if _, err := backup(t.Context(), w.dir, copied); err != nil {
			t.Fatal(err)
		}
		later := w.work(args{})
		if _, err := restore(t.Context(), copied, data); err != nil {
			t.Fatal(err)
		}
		checkRift(t, up1(t, w.repo, data, "--listen", "127.0.0.1:0"), w.project, kept, later)
	})
	t.Run("tail lost", func(t *testing.T) {
		w := newWorld(t, "process")
		kept := w.work(args{})
		block := logFile(w.dir, "msgs/1.blk")
		info, err := os.Stat(block)
		if err != nil {
			t.Fatal(err)
		}
		early, err := os.ReadFile(filepath.Join(w.dir, "checkpoint.json"))
		if err != nil {
			t.Fatal(err)
		}
		later := w.work(args{})
		dir := w.leftBehind(t)
		var cp map[string]any
		if err := json.Unmarshal(early, &cp); err != nil {
			t.Fatal(err)
		}
		cp["boot"] = "11111111-1111-1111-1111-111111111111"
		b, err := json.Marshal(cp)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "checkpoint.json"), string(b))
		cut := logFile(dir, "msgs/1.blk")
		if b, err = os.ReadFile(cut); err != nil {
			t.Fatal(err)
		}
		put(t, cut, string(b[:info.Size()+20]))
		checkRift(t, up1(t, w.repo, dir, "--listen", "127.0.0.1:0", "--durability", "process"), w.project, kept, later)
	})
}

// checkRift: srv lives on from when there was the Session kept, and later not yet.
func checkRift(t *testing.T, srv *child, project string, kept, later session.WorkOut) {
	t.Helper()
	if kept.SessionRef == "" || later.SessionRef == "" || kept.SessionRef == later.SessionRef {
		t.Fatalf("%q %q", kept.SessionRef, later.SessionRef)
	}
	kind, id, next := resumed(t, srv, project, later.SessionRef)
	if kind != "unknown_session_ref" || id != "" {
		t.Errorf("%s of the other history leads to %q (%s)", later.SessionRef, id, kind)
	}
	if n, ok := event.RefSession.ParseRef(next.SessionRef); !ok || n <= 10_000 {
		t.Errorf("the next Session is %s", next.SessionRef)
	}
	if kind, id, _ := resumed(t, srv, project, kept.SessionRef); kind != "" || id != kept.SessionID {
		t.Errorf("%s leads to %q (%s), want %s", kept.SessionRef, id, kind, kept.SessionID)
	}
}
