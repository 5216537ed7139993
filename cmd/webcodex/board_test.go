package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/board"
	"webcodex/eventlog/event"
	"webcodex/mcp/client"
)

// tool makes a call over a window and decodes its output; kind is the refusal, empty: none.
func tool[Out any](t testing.TB, w *client.Client, name string, a args) (out Out, kind string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := w.CallTool(ctx, name, a)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.IsError {
		return out, refusalOf(t, r).Kind
	}
	if err := json.Unmarshal(r.Output, &out); err != nil {
		t.Fatal(err)
	}
	return out, ""
}

// Two windows of different eras: one gives a todo away and waits, the other does it.
//
// Covers: MSG-14, MSG-15, MSG-30, MSG-31, MSG-32, MSG-34, MSG-37, MSG-38
func TestDelegationBetweenTwoWindows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	id := w.work(args{}).SessionID
	coordinator, worker := w.connect("2026-07-28"), w.connect("2025-06-18")
	on := func(a args) args { return with(a, args{"session_id": id}) }
	base, _ := tool[board.ObserveOut](t, coordinator, "observe_session_messages", on(nil))
	todo, _ := tool[board.PostOut](t, coordinator, "post_session_message", on(args{"kind": "todo", "message": "count the files", "delivery_key": "d"}))
	outs := make(chan board.ObserveOut, 1)
	seen, _ := tool[board.ObserveOut](t, coordinator, "observe_session_messages", on(args{"after_observation_token": base.Token}))
	if len(seen.Messages) != 1 || seen.Messages[0].MessageID != todo.MessageID {
		t.Fatalf("%+v", seen)
	}
	go func() {
		o, _ := tool[board.ObserveOut](t, coordinator, "observe_session_messages", on(args{"after_observation_token": seen.Token, "wait_secs": 60}))
		outs <- o
	}()
	a, _ := tool[board.Assignment](t, worker, "get_session_assignment", on(args{"message_id": todo.MessageID}))
	complete := on(args{"message_id": todo.MessageID, "answer": "seven", "completion_key": "k", "expected_assignment_fence": a.Fence})
	if _, kind := tool[board.PostOut](t, worker, "post_session_message", on(args{"kind": "question", "message": "the hidden ones, too?", "reply_to": todo.MessageID})); kind != "" {
		t.Fatal(kind)
	}
	if o := <-outs; len(o.Messages) != 1 || o.Messages[0].Kind != event.MessageQuestion || o.WaitOutcome != "changed" {
		t.Errorf("the wait: %+v", o)
	}
	r, err := worker.CallTool(t.Context(), "complete_session_message", complete)
	if err != nil {
		t.Fatal(err)
	}
	var stale struct {
		Kind       string           `json:"error_kind"`
		Recovery   string           `json:"recovery_kind"`
		Changed    bool             `json:"state_changed"`
		Assignment board.Assignment `json:"assignment"`
	}
	if err := json.Unmarshal(r.Output, &stale); err != nil || !r.IsError || stale.Kind != "assignment_fence_stale" || stale.Changed ||
		stale.Recovery != "re_read" || len(stale.Assignment.Replies) != 1 {
		t.Fatalf("%v %s", err, r.Text)
	}
	complete["expected_assignment_fence"] = stale.Assignment.Fence
	done, kind := tool[board.CompleteOut](t, worker, "complete_session_message", complete)
	if kind != "" || done.Replayed || done.Answer == nil {
		t.Fatalf("%s %+v", kind, done)
	}
	if again, _ := tool[board.CompleteOut](t, coordinator, "complete_session_message", complete); !again.Replayed || again.CompletionID != done.CompletionID {
		t.Errorf("%+v", again)
	}
	if list, _ := tool[board.ListOut](t, coordinator, "list_session_messages", on(args{"reply_to": todo.MessageID})); list.Total != 2 {
		t.Errorf("%+v", list)
	}
}

// What the schema refuses of a message call has the catalogue's kinds.
//
// Covers: MSG-02, MSG-03, MSG-13, MSG-31, EXT-11, EXT-12
func TestBoardSchemaRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	id := w.work(args{}).SessionID
	long := strings.Repeat("é", board.MaxText+1)
	for _, tc := range []struct {
		tool, kind, field string
		a                 args
	}{
		{"post_session_message", "invalid_session_message", "message", args{"kind": "note", "message": long}},
		{"post_session_message", "invalid_session_message", "message", args{"kind": "note", "message": ""}},
		{"post_session_message", "invalid_session_message", "message", args{"kind": "note"}},
		{"post_session_message", "invalid_session_message", "tags", args{"kind": "note", "message": "x", "tags": strings.Split(strings.Repeat("a", 17), "")}},
		{"post_session_message", "invalid_session_message", "tags[0]", args{"kind": "note", "message": "x", "tags": []string{long[:200]}}},
		{"post_session_message", "invalid_arguments", "kind", args{"kind": "order", "message": "x"}},
		{"post_session_message", "invalid_arguments", "author_session_id", args{"kind": "note", "message": "x", "author_session_id": id}},
		{"post_session_message", "invalid_arguments", "message_id", args{"kind": "note", "message": "x", "message_id": event.NewMessageID()}},
		{"complete_session_message", "invalid_arguments", "answer_message_id", args{"message_id": "m", "answer": "x", "completion_key": "k",
			"expected_assignment_fence": "wsa1_" + strings.Repeat("A", 43), "answer_message_id": event.NewMessageID()}},
		{"resolve_session_message", "invalid_session_message", "resolution", args{"message_id": "wc_msg_x", "resolution": long}},
		{"complete_session_message", "invalid_arguments", "expected_assignment_fence", args{"message_id": "m", "answer": "x", "completion_key": "k"}},
		{"complete_session_message", "invalid_arguments", "completion_key", args{"message_id": "m", "answer": "x", "expected_assignment_fence": "wsa1_" + strings.Repeat("A", 43)}},
		{"complete_session_message", "invalid_assignment_fence", "expected_assignment_fence", args{"message_id": "m", "answer": "x", "completion_key": "k", "expected_assignment_fence": "wsa1_" + strings.Repeat("A", 42)}},
		{"complete_session_message", "invalid_assignment_fence", "expected_assignment_fence", args{"message_id": "m", "answer": "x", "completion_key": "k", "expected_assignment_fence": ""}},
		{"observe_session_messages", "invalid_observation_token", "after_observation_token", args{"after_observation_token": strings.Repeat("A", 193)}},
		{"observe_session_messages", "invalid_observation_token", "after_observation_token", args{"after_observation_token": ""}},
		{"observe_session_messages", "invalid_arguments", "wait_secs", args{"after_observation_token": "x", "wait_secs": 61}},
		{"observe_session_messages", "invalid_arguments", "wait_secs", args{"wait_secs": 1}},
	} {
		w.refused(tc.tool, with(tc.a, args{"session_id": id}), tc.kind, tc.field)
	}
	for _, own := range []string{"received_at", "timestamp", "output"} { // a report's time is the server's
		w.refused("record_external_observation", with(sample["record_external_observation"], args{"project": w.project, "session_id": id, own: "2020-01-01T00:00:00.000Z"}), "invalid_arguments", own)
	}
}

// The server is killed right after a token was given out, and again under a wait: in the next
// life the token is one, what came after it comes once, and keys are remembered.
//
// Covers: MSG-22, MSG-27, MSG-36, RES-12
func TestKilledServerKeepsTheBoard(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	repo := filepath.Join(base, "repo")
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	start := func() (*child, *window) {
		t.Helper()
		c, err := startChild(t.Context(), program(t), nil, "--data", filepath.Join(base, "data"), "--listen", "127.0.0.1:0", "--durability", "process", "--", repo)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.kill)
		w, err := dialWindow(t.Context(), c.ready.MCPURL, c.ready.Token)
		if err != nil {
			t.Fatal(err)
		}
		return c, w
	}
	c, w := start()
	begun, _ := tool[struct {
		ID event.SessionID `json:"session_id"`
	}](t, w.client, "work_on_project", args{"instruction": "x", "project": c.ready.Project})
	on := func(a args) args { return with(a, args{"session_id": begun.ID}) }
	keyed := on(args{"kind": "todo", "message": "do it", "delivery_key": "d"})
	todo, _ := tool[board.PostOut](t, w.client, "post_session_message", keyed)
	a, _ := tool[board.Assignment](t, w.client, "get_session_assignment", on(args{"message_id": todo.MessageID}))
	seen := map[event.MessageID]bool{}
	token := ""
	for round := range 3 {
		o, _ := tool[board.ObserveOut](t, w.client, "observe_session_messages", on(nil))
		c.kill()
		w.close()
		c, w = start()
		if round > 0 {
			o.Token = token
		}
		now, kind := tool[board.ObserveOut](t, w.client, "observe_session_messages", on(args{"after_observation_token": o.Token}))
		if kind != "" || now.HistoryLost || now.HasMore || len(now.Messages) != min(round, 1) {
			t.Fatalf("round %d: %s %+v", round, kind, now)
		}
		for _, m := range now.Messages {
			if seen[m.MessageID] {
				t.Errorf("round %d: %s is sent as new again", round, m.MessageID)
			}
			seen[m.MessageID] = true
		}
		if again, _ := tool[board.PostOut](t, w.client, "post_session_message", keyed); !again.Replayed || again.MessageID != todo.MessageID {
			t.Fatalf("round %d: %+v", round, again)
		}
		// A wait under which the server dies, and a post that it does not live to tell of.
		broken := make(chan error, 1)
		waiting, err := dialWindow(t.Context(), c.ready.MCPURL, c.ready.Token)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := waiting.client.CallTool(t.Context(), "observe_session_messages", on(args{"after_observation_token": now.Token, "wait_secs": 60}))
			broken <- err
		}()
		token = now.Token
		c.kill()
		if err := <-broken; err == nil {
			t.Error("a wait was answered by a dead server")
		}
		waiting.close()
		w.close()
		c, w = start()
		if _, kind := tool[board.PostOut](t, w.client, "post_session_message", on(args{"kind": "note", "message": "late"})); kind != "" {
			t.Fatal(kind)
		}
	}
	complete := on(args{"message_id": todo.MessageID, "answer": "done", "completion_key": "k", "expected_assignment_fence": a.Fence})
	first, kind := tool[board.CompleteOut](t, w.client, "complete_session_message", complete)
	if kind != "" || first.Replayed {
		t.Fatalf("the fence of the first life: %s %+v", kind, first)
	}
	c.kill()
	w.close()
	_, w = start()
	if again, kind := tool[board.CompleteOut](t, w.client, "complete_session_message", complete); !again.Replayed || again.CompletionID != first.CompletionID {
		t.Errorf("%s %+v", kind, again)
	}
	w.close()
}

// `board --follow` shows what is there, then each change as it comes, and ends when interrupted.
func TestBoardFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	id := w.work(args{}).SessionID
	first := must[board.PostOut](w, "post_session_message", args{"session_id": id, "kind": "question", "message": "which?"})
	ctx, interrupt := context.WithCancel(t.Context())
	r, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- runProgram(ctx, []string{"board", string(id), "--follow", "--data", w.dir}, strings.NewReader(""), out, io.Discard)
		out.Close()
	}()
	lines := bufio.NewScanner(r)
	next := func(want ...string) {
		t.Helper()
		for _, s := range want {
			if !lines.Scan() || !strings.Contains(lines.Text(), s) {
				t.Fatalf("%q, want %q", lines.Text(), s)
			}
		}
	}
	next("question  open  "+string(first.MessageID), "    which?")
	must[board.PostOut](w, "post_session_message", args{"session_id": id, "kind": "answer", "message": "this\nand that", "reply_to": first.MessageID})
	next("answer  open", "    this", "    and that")
	must[board.ResolveOut](w, "resolve_session_message", args{"session_id": id, "message_id": first.MessageID, "resolution": "that"})
	next("question  resolved", "    which?", "    => that")
	interrupt()
	if lines.Scan() {
		t.Errorf("more: %q", lines.Text())
	}
	if c := <-code; c != exitOK {
		t.Errorf("exit status %d", c)
	}
}

// A server that dies under `board --follow` ends it with the status for that, and nothing is said to
// be in doubt: looking changes nothing.
func TestBoardFollowsUntilTheServerDies(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	w, err := dialWindow(t.Context(), c.ready.MCPURL, c.ready.Token)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	id := saying(t, c, w, "look")
	r, out := io.Pipe()
	code, said := make(chan int, 1), &strings.Builder{}
	go func() {
		code <- runProgram(t.Context(), []string{"board", string(id), "--follow", "--data", data}, strings.NewReader(""), out, said)
		out.Close()
	}()
	if lines := bufio.NewScanner(r); !lines.Scan() {
		t.Fatal(said.String())
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	c.kill()
	if got := <-code; got != exitNoServer || strings.Contains(said.String(), "may have run") || !strings.Contains(said.String(), "webcodex up") {
		t.Errorf("exit status %d: %s", got, said.String())
	}
}

// A window that follows a board for long remembers no more than the board holds, and prints
// nothing twice for it.
//
// Covers: MSG-05
func TestFollowingABoardIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	id := w.work(args{}).SessionID
	var out strings.Builder
	b := &boardWindow{w: &window{client: w.client, release: func() {}}, id: id, out: &out, shown: map[event.MessageID][sha256.Size]byte{}}
	for range 2 {
		if _, kind := tool[board.PostOut](t, w.client, "post_session_message", args{"session_id": id, "kind": "note", "message": "said once"}); kind != "" {
			t.Fatal(kind)
		}
	}
	for range maxShown {
		b.shown[event.NewMessageID()] = [sha256.Size]byte{1} // evicted by now
	}
	for range 2 {
		if err := b.all(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "said once"); n != 2 || len(b.shown) != 2 {
		t.Errorf("%d remembered, %d printed:\n%s", len(b.shown), n, out.String())
	}
}
