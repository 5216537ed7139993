package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/attention"
	"webcodex/commands/peer"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp"
	"webcodex/mcp/client"
)

// hostWindow is a conversation of a host: each of its requests says which one it is.
type hostWindow struct {
	w *world
	c *client.Client
}

func (w *world) window(version, name string) *hostWindow {
	w.t.Helper()
	c, err := client.Connect(context.Background(), client.Options{URL: "http://" + w.srv.tcpListener.Addr().String() + "/mcp",
		Token: w.srv.access.Token(), Version: version, Meta: args{"openai/session": name}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return &hostWindow{w, c}
}

// beside is what answers carry beside their output.
type beside struct {
	SessionID event.SessionID      `json:"session_id"`
	MessageID event.MessageID      `json:"message_id"`
	Awareness *peer.Awareness      `json:"peer_awareness"`
	Inbox     *peer.Inbox          `json:"peer_messages"`
	Gap       *peer.Gap            `json:"recorder_gap"`
	Attention *attention.Attention `json:"session_attention"`
	Kind      string               `json:"error_kind"`
	Context   json.RawMessage      `json:"context"`
}

func (h *hostWindow) call(tool string, a args) (out beside) {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := h.c.CallTool(ctx, tool, a)
	if err != nil {
		h.w.t.Fatalf("%s: %v", tool, err)
	}
	if err := r.Decode(&out); err != nil {
		h.w.t.Fatal(err)
	}
	return out
}

// Two windows of one host, of different eras of the protocol, meet at a Project and write to
// each other over call_runtime_tool, wherever they work by then.
//
// Covers: WIN-01, WIN-08, WIN-10, WIN-13, WIN-15, WIN-26, ACK-01, ACK-21
func TestTwoWindowsOfAHostMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	one, two := w.window(mcp.Modern, "v1/conversation-one"), w.window("2025-11-25", "v1/conversation-two")
	start := args{"project": w.project, "instruction": "x"}
	file := args{"project": w.project, "items": []args{{"path": "add.go"}}}
	id := one.call("work_on_project", start).SessionID
	a := two.call("work_on_project", start).Awareness
	if b := one.call("read_files", file); a == nil || b.Awareness == nil || a.Peers[0] == b.Awareness.Peers[0] || b.Gap == nil || b.Gap.SessionID != id || b.Gap.SessionRef != "~s1" {
		t.Fatalf("%+v, %+v, %+v", a, b.Awareness, b.Gap)
	}
	if b := one.call("read_files", file); b.Awareness != nil {
		t.Errorf("told twice: %+v", b.Awareness)
	}
	two.call("work_on_project", args{"project": w.other, "instruction": "elsewhere"})
	m := two.call("call_runtime_tool", args{"tool": "post_peer_message", "arguments": args{"peer_id": a.Peers[0].PeerID, "message": "look", "requires_ack": true}})
	if m.MessageID == "" {
		t.Fatalf("%+v", m)
	}
	for range 2 {
		if b := one.call("list_projects", args{}); b.Inbox == nil || len(b.Inbox.Messages) != 1 || b.Inbox.Messages[0].Message != "look" {
			t.Fatalf("%+v", b.Inbox)
		}
	}
	if b := one.call("list_projects", args{"_wc": args{"ack": []string{string(m.MessageID)}}}); b.Inbox != nil {
		t.Errorf("%+v", b.Inbox)
	}
	back := one.call("call_runtime_tool", args{"tool": "post_peer_message", "arguments": args{
		"peer_id": one.call("list_projects", args{}).Inbox.Messages[0].PeerID, "message": "seen", "requires_ack": true}})
	if b := two.call("list_projects", args{}); b.Inbox == nil || b.Inbox.Messages[0].MessageID != back.MessageID {
		t.Errorf("%+v", b.Inbox)
	}
	if b := two.call("list_projects", args{"ack_session_message_ids": []string{string(back.MessageID)}}); b.Inbox != nil {
		t.Errorf("%+v", b.Inbox)
	}
	one.call("post_session_message", args{"session_id": id, "kind": "todo", "message": "do", "requires_ack": true})
	if b := one.call("read_files", file); b.Attention == nil || b.Attention.SessionID != id || b.Attention.Source != "window_affinity" {
		t.Errorf("%+v", b.Attention)
	}
	got := one.call("list_projects", args{"_wc": args{"context": []string{"workflow.resume"}}}).Context
	if !strings.Contains(string(got), `"source":"window"`) || !strings.Contains(string(got), string(id)) {
		t.Errorf("%s", got)
	}
}

// A window that gives up in the middle of a call was not shown what was for it: that comes with its
// next call, in every era.
//
// Covers: WIN-14, WIN-16
func TestWhatComesOnceIsNotSpentOnNobody(t *testing.T) {
	t.Parallel()
	for _, version := range []string{mcp.Modern, "2025-11-25"} {
		w := newWorld(t, "process")
		file := args{"project": w.project, "items": []args{{"path": "add.go"}}}
		one, two := w.window(mcp.Modern, "v1/one"), w.window(version, "v1/two")
		one.call("read_files", file)
		two.call("read_files", file)
		to := one.call("read_files", file).Awareness.Peers[0].PeerID
		one.call("call_runtime_tool", args{"tool": "post_peer_message", "arguments": args{"peer_id": to, "message": "look"}})
		ctx, giveUp := context.WithCancel(t.Context())
		begun, over := filepath.Join(w.repo, "begun"), make(chan struct{})
		go func() {
			defer close(over)
			_, _ = two.c.CallTool(ctx, "run_shell", args{"project": w.project, "command": "touch begun; sleep 60"})
		}()
		for _, err := os.Stat(begun); err != nil; _, err = os.Stat(begun) {
			time.Sleep(10 * time.Millisecond)
		}
		giveUp()
		<-over
		for w.srv.kernel.InFlight() > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if b := two.call("list_projects", args{}); b.Inbox == nil || b.Inbox.Messages[0].Projections != 1 {
			t.Errorf("%s: %+v", version, b.Inbox)
		}
		if b := two.call("list_projects", args{}); b.Inbox != nil {
			t.Errorf("%s: it came again: %+v", version, b.Inbox)
		}
	}
}

// What a host calls its conversation is in no file of the data directory and nothing that the
// server says; its hash is, where a window is related to a Session.
//
// Covers: WIN-02, WIN-20
func TestNoWindowIsAtRest(t *testing.T) {
	t.Parallel()
	const marker = "MARKER-window-7c1e"
	w := newWorld(t, "always")
	h := w.window(mcp.Modern, "v1/"+marker)
	id := h.call("work_on_project", args{"project": w.project, "instruction": "x"}).SessionID
	file := args{"project": w.project, "items": []args{{"path": "add.go"}}}
	for range 2 {
		h.call("read_files", file)
		h.call("read_files", with(file, args{"_wc": args{"record": id}}))
		h.call("run_process", args{"project": w.project, "session_id": id, "executable": "env"})
		h.call("read_files", args{"nonsense": 1})
		h.call("work_on_project", args{"session_id": "wc_sess_x", "instruction": "x"})
		h = w.window(mcp.Modern, strings.Repeat(marker, 20)) // malformed: too long
	}
	hashes := 0
	err := w.srv.log.Replay(context.Background(), eventlog.Range{Aggregate: event.WindowAggregate(w.srv.access.Principal().Actor.Principal)}, func(e eventlog.Entry) error {
		for _, ev := range e.Commit.Events {
			if r, ok := ev.(event.WindowRelated); ok && r.Session == id && event.ValidFingerprint(string(r.Window)) {
				hashes++
			}
		}
		return nil
	})
	if err != nil || hashes != 2 {
		t.Errorf("%d relations are stored (%v)", hashes, err)
	}
	if strings.Contains(w.said.String(), marker) {
		t.Error("the server said it")
	}
	err = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(marker)) {
			t.Errorf("it is in %s", path[len(w.dir):])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// given windows that met, one of them at a Session that is erased, when the log's beginning has
// left with it, then messages and the other relation are still there, and that one is not.
//
// Covers: WIN-16, WIN-18
func TestWindowsOutliveWhatLeavesTheLog(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	dial := func(name string) *window {
		w, err := connectWindow(t.Context(), client.Options{URL: c.ready.MCPURL, Token: c.ready.Token, Meta: args{"openai/session": name}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.close)
		return w
	}
	one, two := dial("one"), dial("two")
	stays, goes := saying(t, c, one, "stays"), saying(t, c, two, "markerofthewindow")
	var met beside
	res, err := one.call(t.Context(), "read_files", encode(args{"project": c.ready.Project, "items": []args{{"path": "x"}}}))
	if err != nil || decode(res, &met) != nil || met.Awareness == nil {
		t.Fatalf("%v: %s", err, res.Output)
	}
	if res, err = one.call(t.Context(), "post_peer_message", encode(args{"peer_id": met.Awareness.Peers[0].PeerID, "message": "look"})); err != nil || !res.Success {
		t.Fatalf("%v: %s", err, res.Output)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := erase(t.Context(), data, goes); err != nil {
		t.Fatal(err)
	}
	access, err := mcp.OpenAccess(data, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{false, true} {
		if fresh { // from what is carried in the log alone
			if err := os.Remove(filepath.Join(data, stateFile)); err != nil {
				t.Fatal(err)
			}
		}
		o, err := openOffline(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		b := o.models.windows.Book(access.Principal().Actor.Principal)
		if len(b.Messages) != 1 || b.Messages[0].Text != "look" || len(b.Routes) == 0 || len(b.Relations) != 1 || b.Relations[0].Session != stays {
			t.Errorf("%+v", b)
		}
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
	}
}
