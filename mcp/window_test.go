package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/mcp/schema"
)

// withWindow adds a tool that tells the hash of its caller's window.
func withWindow(c *Config) {
	c.Tools = append(c.Tools, Tool{Spec: &call.Spec{Name: "window", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, In: struct{}{},
		Run: func(_ context.Context, c *call.Call) (call.Result, error) {
			return call.Result{Output: map[string]event.WindowID{"window": c.Window()}}, nil
		}}, Title: "w", Description: "w", Category: "runtime", Direct: true, Input: schema.Object()})
}

// The host's name for a conversation is a hash from the edge on; what is malformed is none.
//
// Covers: WIN-01, WIN-03
func TestAWindowIsAHashOfWhatTheHostSays(t *testing.T) {
	r := newRig(t, withWindow)
	window := func(meta string) (out string) {
		t.Helper()
		m := last(t, r.send(modernCall("window", `{}`, meta)))
		var s struct{ Output struct{ Window string } }
		if m.Error != nil || json.Unmarshal(m.Result.Structured, &s) != nil {
			t.Fatalf("%+v", m)
		}
		return s.Output.Window
	}
	named := func(name string) string { return window(`"openai/session":` + quoted(name)) }
	one := named("v1/abc")
	if !event.ValidFingerprint(one) || one != named("v1/abc") || one == named("v1/abd") || strings.Contains(one, "abc") {
		t.Errorf("%q", one)
	}
	if one != string(windowHash("openai/session", "v1/abc")) || windowHash("another/session", "v1/abc") == windowHash("openai/session", "v1/abc") {
		t.Error("sources share windows")
	}
	if other := windowOf(sdk.Meta{"another/session": "v1/abc"}); other != "" {
		t.Errorf("another source gave %q", other)
	}
	if w := named(strings.Repeat("x", 256)); !event.ValidFingerprint(w) {
		t.Errorf("256 bytes gave %q", w)
	}
	for _, bad := range []string{"", strings.Repeat("x", 257), "a b", " ", "a\n", "é", "\x7f", "a\x00"} {
		if w := named(bad); w != "" {
			t.Errorf("%q gave %q", bad, w)
		}
	}
	for _, meta := range []string{"", `"openai/session":7`, `"openai/session":null`, `"openai/session":["a"]`, `"openai/Session":"a"`} {
		if w := window(meta); w != "" {
			t.Errorf("%s gave %q", meta, w)
		}
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// What the host says is in no file, no line of the server's own log and no answer.
//
// Covers: WIN-02
func TestWhatTheHostSaysOfAWindowIsNowhere(t *testing.T) {
	const marker = "MARKER-of-the-window-5f0d"
	var lines bytes.Buffer
	r := newRig(t, withWindow, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	var answers strings.Builder
	for _, tool := range []string{"window", "echo", "refused", "tool_panic", "edge_panic", "nosuch"} {
		answers.WriteString(r.send(modernCall(tool, `{}`, `"openai/session":"`+marker+`"`)).body)
	}
	v := legacy2
	id := r.initialize(v)
	answers.WriteString(r.send(request{header: legacyHeader(v, id), body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"window","arguments":{},` +
		`"_meta":{"openai/session":"` + marker + `"}}}`}).body)
	r.stop()
	if err := r.log.Close(); err != nil {
		t.Fatal(err)
	}
	if answers.Len() < 1000 || strings.Contains(answers.String(), marker) || strings.Contains(lines.String(), marker) || lines.Len() == 0 {
		t.Errorf("the marker is in an answer or a line: %s\n%s", answers.String(), lines.String())
	}
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(marker)) {
			t.Errorf("the marker is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
