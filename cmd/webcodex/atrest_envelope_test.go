package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp"
)

// What somebody says to others is content of the board, or of the peers, and of nothing else: it
// lies in the one event that carries it and in the one row that is made of that. Every other text
// of an envelope, of a refused call, of a host's window or of a caller's key, and whatever a
// caller gets to give back, lies in no file of the data directory, and the server does not say it.
//
// Covers: CTL-09, MSG-27, MSG-36, MSG-44, WIN-02
func TestWhatAnEnvelopeLeavesAtRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "always")
	said, never := map[string]string{}, map[string]string{}
	content := func(what string) string { said[what] = "SAID-" + what + "-5e1f"; return said[what] }
	secret := func(what string) string { never[what] = "NEVER-" + what + "-9c3a"; return never[what] }
	held := func(what, value string) string {
		if len(value) < 20 {
			t.Fatalf("%s is %q", what, value)
		}
		never["a held "+what] = value
		return value
	}
	one, two := w.window(mcp.Modern, "v1/"+secret("window-one")), w.window("2025-11-25", "v1/"+secret("window-two"))
	on := one.speak(t, "work_on_project", args{"project": w.project, "instruction": "x"}).ID
	closed := one.speak(t, "work_on_project", args{"project": w.project, "instruction": "x"}).ID
	post := func(to, kind, text string) string {
		return one.speak(t, "post_session_message", args{"session_id": to, "kind": kind, "message": text, "requires_ack": true, "tags": []string{content("tag of " + kind)},
			"delivery_key": secret("key of " + kind)}).Message
	}
	q, risk, todo, late := post(on, "question", content("question")), post(on, "risk", content("risk")), post(on, "todo", content("todo")), post(closed, "note", content("note"))
	one.speak(t, "close_session", args{"session_id": closed})
	file := args{"project": w.project, "items": []args{{"path": "add.go"}}}
	assign := func() string {
		return held("fence", one.speak(t, "get_session_assignment", args{"session_id": on, "message_id": todo}).Fence)
	}
	stale := assign()
	observation := held("token", one.speak(t, "observe_session_messages", args{"session_id": on}).Token)
	held("token of a delta", one.speak(t, "observe_session_messages", args{"session_id": on, "after_observation_token": observation}).Token)
	ack := held("ack_ref", one.speak(t, "read_files", with(file, args{"_wc": args{"record": on}})).Attention.Ref)

	// What is said through the envelope.
	one.speak(t, "read_files", with(file, args{"_wc": args{"record": on, "ack": []string{q, secret("ack")}, "ack_ref": ack, "context": []string{"webcodex.workflow", secret("context")},
		"reply": args{"reply_to": todo, "message": content("reply")}, "resolve": args{"message_id": risk, "resolution": content("resolution")}}}))
	one.speak(t, "read_files", with(file, args{"_wc": args{"record": on, "ack_ref": secret("ack_ref"), "control": args{"after_success": args{"todo_completion": args{
		"session_id": on, "message_id": todo, "answer": content("answer"), "completion_key": secret("completion key"), "expected_assignment_fence": assign()}}}}}))
	two.speak(t, "work_on_project", args{"project": w.project, "instruction": "x"})
	peer := one.speak(t, "read_files", file).Awareness
	if peer == nil {
		t.Fatal("the windows have not met")
	}
	one.speak(t, "post_peer_message", args{"peer_id": peer.Peers[0].PeerID, "message": content("peer"), "requires_ack": true, "delivery_key": secret("peer key")})
	two.speak(t, "read_files", file)

	// What is refused, or of which nothing comes.
	for _, tc := range map[string]struct {
		tool string
		args args
	}{
		"member":            {"read_files", with(file, args{"_wc": args{secret("member"): secret("value")}})},
		"record":            {"read_files", with(file, args{"_wc": args{"record": secret("record")}})},
		"reply, closed":     {"read_files", with(file, args{"_wc": args{"record": closed, "reply": args{"reply_to": late, "message": secret("late reply")}}})},
		"reply, unknown":    {"read_files", with(file, args{"_wc": args{"record": on, "reply": args{"reply_to": secret("reply_to"), "message": secret("lost reply")}}})},
		"resolve, unknown":  {"read_files", with(file, args{"_wc": args{"record": on, "resolve": args{"message_id": secret("message"), "resolution": secret("lost resolution")}}})},
		"goal":              {"read_files", with(file, args{"_wc": args{"record": on, "control": args{"before": args{"goal_progress": args{"goal_id": secret("goal"), "text": secret("goal text")}}}}})},
		"goal after":        {"read_files", with(file, args{"_wc": args{"record": on, "control": args{"after_success": args{"goal_completion": args{"text": secret("goal end")}}}}})},
		"two":               {"read_files", with(file, args{"_wc": args{"control": args{"after_success": args{"goal_completion": args{"text": secret("one of two")}, "todo_completion": args{"answer": secret("other of two")}}}}})},
		"stale":             {"complete_session_message", args{"session_id": on, "message_id": todo, "answer": secret("stale answer"), "completion_key": secret("stale key"), "expected_assignment_fence": stale}},
		"foreign token":     {"observe_session_messages", args{"session_id": on, "after_observation_token": secret("token")}},
		"post, closed":      {"post_session_message", args{"session_id": closed, "kind": "note", "message": secret("late post"), "delivery_key": secret("late key")}},
		"post, kind":        {"post_session_message", args{"session_id": on, "kind": secret("kind"), "message": secret("kindless")}},
		"post, long":        {"post_session_message", args{"session_id": on, "kind": "note", "message": strings.Repeat(secret("long post"), 600), "tags": []string{secret("lost tag")}}},
		"post, other words": {"post_session_message", args{"session_id": on, "kind": "question", "message": secret("other words"), "delivery_key": never["key of question"]}},
		"peer, unknown":     {"post_peer_message", args{"peer_id": "wc_peer_" + strings.Repeat("0", 32), "message": secret("lost peer message"), "delivery_key": secret("lost peer key")}},
		"peer, no id":       {"post_peer_message", args{"peer_id": secret("peer id"), "message": secret("peerless")}},
	} {
		for _, h := range []*hostWindow{one, two} {
			h.call(tc.tool, tc.args)
		}
	}
	two.call("read_files", with(file, args{"recording_session_id": secret("legacy record"), "ack_session_message_ids": []string{secret("legacy ack")}}))
	two.call("read_files", with(file, args{"recording_session_id": on, "ack_session_message_ids": []string{secret("legacy ack 2")}}))
	never["the bearer token"] = w.srv.access.Token()

	hay := w.atRest()
	for what, text := range never {
		for name, b := range hay {
			if form, at := lies(b, text); at >= 0 && (name != "token" || what != "the bearer token") {
				t.Errorf("%s: %q is in %s: …%s…", what, form, name, around(b, at))
			}
		}
	}
	w.contentOnly(said)
	for what, text := range said {
		if _, at := lies([]byte(w.said.String()), text); at >= 0 {
			t.Errorf("the server said the %s", what)
		}
		seen := map[string]bool{} // or the search would find nothing at all
		for name, b := range hay {
			if _, at := lies(b, text); at >= 0 {
				in, _, _ := strings.Cut(strings.TrimSuffix(name, "-wal"), "/")
				if seen[in] = true; in != "log" && in != "state.db" {
					t.Errorf("the %s is in %s", what, name)
				}
			}
		}
		if !seen["log"] || !seen["state.db"] {
			t.Errorf("the %s is in %v alone", what, seen)
		}
	}
}

// spoken is what the test needs of any answer.
type spoken struct {
	ID        string `json:"session_id"`
	Message   string `json:"message_id"`
	Fence     string `json:"assignment_fence"`
	Token     string `json:"observation_token"`
	Attention struct {
		Ref string `json:"ack_ref"`
	} `json:"session_attention"`
	Awareness *struct {
		Peers []struct {
			PeerID string `json:"peer_id"`
		} `json:"peers"`
	} `json:"peer_awareness"`
	Control map[string]struct {
		Success bool `json:"success"`
	} `json:"control"`
}

// speak is a call that works, with all that its envelope asks for.
func (h *hostWindow) speak(t *testing.T, tool string, a args) (out spoken) {
	t.Helper()
	if !slices.ContainsFunc(mcp.Catalogue(), func(c mcp.Tool) bool { return c.Spec.Name == tool && c.Direct }) {
		a, tool = args{"tool": tool, "arguments": a}, "call_runtime_tool"
	}
	r, err := h.c.CallTool(context.Background(), tool, a)
	if err != nil || r.IsError {
		t.Fatalf("%s: %s %v", tool, r.Text, err)
	}
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	for slot, c := range out.Control {
		if !c.Success {
			t.Fatalf("%s: %s", slot, r.Text)
		}
	}
	return out
}

// contentOnly checks that each text lies in exactly one event of the log, of a kind that carries
// words, and in the read models in rows of messages alone.
func (w *world) contentOnly(said map[string]string) {
	w.t.Helper()
	events := map[string]int{}
	err := w.srv.log.Replay(context.Background(), eventlog.Range{}, func(e eventlog.Entry) error {
		for _, ev := range e.Commit.Events {
			raw, err := json.Marshal(ev)
			if err != nil {
				return err
			}
			for what, text := range said {
				if !strings.Contains(string(raw), text) {
					continue
				}
				switch ev.(type) {
				case event.MessagePosted, event.MessageResolved, event.MessageCompleted, event.PeerPosted:
					events[what]++
				default:
					w.t.Errorf("the %s is in a %T: %s", what, ev, raw)
				}
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for what := range said {
		if events[what] != 1 {
			w.t.Errorf("%d events hold the %s", events[what], what)
		}
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "state.db")+"?mode=ro")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	for _, table := range column[string](w.t, db, `SELECT name FROM sqlite_master WHERE type = 'table'`) {
		if table == "session_message" || table == "window_row" {
			continue
		}
		for _, c := range column[string](w.t, db, fmt.Sprintf(`SELECT name FROM pragma_table_info('%s')`, table)) {
			for _, v := range column[string](w.t, db, fmt.Sprintf(`SELECT CAST(%q AS TEXT) FROM %q WHERE %q IS NOT NULL`, c, table, c)) {
				for what, text := range said {
					if strings.Contains(v, text) {
						w.t.Errorf("the %s is in %s.%s: %s", what, table, c, v)
					}
				}
			}
		}
	}
}

// column reads the first column of a query.
func column[V any](t testing.TB, db *sql.DB, query string) (out []V) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var v V
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
