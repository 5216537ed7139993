package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// host is the other side of ServeStdio: what a host's process sees.
type host struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan string
	ended chan error
}

func (r *rig) host(cfg StdioConfig) *host {
	r.t.Helper()
	if cfg.Token == "" {
		cfg.Token = r.access.Token()
	}
	if path := r.socket; cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", path) }
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	h := &host{t: r.t, in: inW, lines: make(chan string, 1024), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := ServeStdio(ctx, inR, outW, cfg)
		_ = outW.Close()
		h.ended <- err
	}()
	go func() {
		defer close(h.lines)
		sc := bufio.NewScanner(outR)
		sc.Buffer(nil, maxEvent)
		for sc.Scan() {
			h.lines <- sc.Text()
		}
	}()
	r.t.Cleanup(func() { cancel(); _ = inW.Close(); _ = inR.Close() })
	return h
}

func (h *host) say(line string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, line+"\n"); err != nil {
		h.t.Fatal(err)
	}
}

// hear is the next message; anything that is not one fails the test.
func (h *host) hear() rpc {
	h.t.Helper()
	l := soon(h.t, h.lines, "stdout")
	var m rpc
	if err := json.Unmarshal([]byte(l), &m); err != nil {
		h.t.Fatalf("stdout carries %q", l)
	}
	return m
}

const stdioInit = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func legacyLine(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

func modernLine(id, tool, args string) string {
	return strings.Replace(modernCall(tool, args, "").body, `"id":7`, `"id":`+id, 1)
}

// TestStdioBothEras: one host process discovers, initialises and calls in both eras.
func TestStdioBothEras(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{})
	h.say(`{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{` + modernMeta + `}}`)
	if m := h.hear(); string(m.ID) != `"d"` || m.Error != nil || len(m.Result.Supported) != 3 {
		t.Fatalf("%+v", m)
	}
	h.say(stdioInit)
	if m := h.hear(); string(m.ID) != "1" || m.Result.Version != legacy1 {
		t.Fatalf("%+v", m)
	}
	h.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, l := range []string{legacyLine("2", "echo", `{"n":9007199254740993}`), modernLine("3", "echo", `{"n":9007199254740993}`)} {
		h.say(l)
		if m := h.hear(); m.Error != nil || m.Result.IsError || !strings.Contains(m.Result.Content[0].Text, "9007199254740993") {
			t.Errorf("%s: %+v", l, m)
		}
	}
	h.say(modernLine("4", "no_such", `{}`))
	if m := h.hear(); m.Error == nil || m.Error.Code != codeInvalidParams || string(m.ID) != "4" {
		t.Errorf("%+v", m)
	}
	h.say(`{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"naïve ` + "\\n" + `","arguments":{},` + modernMeta + `}}`)
	if m := h.hear(); m.Error == nil || m.Error.Code == codeHeaderMismatch {
		t.Errorf("a name that no header can carry: %+v", m.Error)
	}
	_ = h.in.Close()
	if err := soon(t, h.ended, "the end"); err != nil {
		t.Error(err)
	}
}

// TestStdioBadLines: each gets one answer, and the stream stays usable.
func TestStdioBadLines(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{})
	for _, c := range []struct {
		line string
		code int
	}{
		{`{"jsonrpc":`, codeParse},
		{`[` + legacyLine("1", "echo", `{}`) + `]`, codeInvalidRequest},
		{strings.Repeat("[", 70), codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat(`[`, 65) + strings.Repeat(`]`, 65) + `}`, codeInvalidRequest},
		{strings.Repeat("x", MaxBody+10), codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":8,"method":"no/such"}`, codeMethodNotFound},
	} {
		h.say(c.line)
		if m := h.hear(); m.Error == nil || m.Error.Code != c.code {
			t.Errorf("%.60s: %+v", c.line, m)
		}
	}
	h.say("")
	h.say(legacyLine("9", "echo", `{}`))
	if m := h.hear(); string(m.ID) != "9" || m.Error != nil {
		t.Errorf("%+v", m)
	}
}

// TestStdioLongCall: a call that is too long is refused under its own id, wherever that
// stands; what is no call, or has no usable id, under none.
func TestStdioLongCall(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{})
	fill := `{"name":"echo","arguments":{"id":5,"text":"` + strings.Repeat(`x`, MaxBody) + `\"id\":6,{","x":[{"id":6}]}}`
	for line, id := range map[string]string{
		`{"jsonrpc":"2.0","id":41,"method":"tools/call","params":` + fill + `}`:                          "41",
		`{"method":"tools/call","params":` + fill + `,"jsonrpc":"2.0","id": "a\"b" }`:                    `"a\"b"`,
		`{"params":` + fill + `,"method":"tools/call","jsonrpc":"2.0"}`:                                  "null",
		`{"jsonrpc":"2.0","id":1,"result":` + fill + `}`:                                                 "null",
		`{"id":1.5,"method":"tools/call","params":` + fill + `}`:                                         "null",
		`{"id":{"id":7},"method":"tools/call","params":` + fill + `}`:                                    "null",
		`{"id":"` + strings.Repeat("y", maxIDBytes+1) + `","method":"tools/call","params":` + fill + `}`: "null",
		`{"id":` + strings.Repeat("1", MaxBody) + `,"method":"tools/call"}`:                              "null",
	} {
		h.say(line)
		if m := h.hear(); m.Error == nil || m.Error.Code != codeInvalidRequest || idText(m) != id {
			t.Errorf("%.60s: %s %+v", line, m.ID, m.Error)
		}
	}
}

func idText(m rpc) string {
	if m.ID == nil {
		return "null"
	}
	return string(m.ID)
}

// TestStdioCancel: notifications/cancelled ends a call in both eras.
func TestStdioCancel(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{})
	h.say(stdioInit)
	h.hear()
	for era, line := range map[string]string{"modern": modernLine("41", "wait", `{}`), "legacy": legacyLine("41", "wait", `{}`)} {
		h.say(line)
		soon(t, r.probe.entered, era)
		h.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":41}}`)
		if err := soon(t, r.probe.ended, era); err == nil {
			t.Errorf("%s: the call ran on", era)
		}
	}
}

// TestStdioCallsRunBesideEachOther: a long call does not hold up a short one.
func TestStdioCallsRunBesideEachOther(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{})
	h.say(modernLine("1", "wait", `{}`))
	soon(t, r.probe.entered, "long call")
	h.say(modernLine("2", "echo", `{}`))
	if m := h.hear(); string(m.ID) != "2" {
		t.Errorf("first came %s", m.ID)
	}
	close(r.probe.release)
	if m := h.hear(); string(m.ID) != "1" || m.Result.IsError {
		t.Errorf("then came %+v", m)
	}
}

// TestStdioEndOfInput: calls in flight still get their answers, then the process may go.
func TestStdioEndOfInput(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{})
	h.say(modernLine("1", "wait", `{}`))
	soon(t, r.probe.entered, "call")
	_ = h.in.Close()
	close(r.probe.release)
	if m := h.hear(); m.Result.IsError {
		t.Errorf("%+v", m)
	}
	if err := soon(t, h.ended, "the end"); err != nil {
		t.Error(err)
	}

	r.probe.release = make(chan struct{})
	h = r.host(StdioConfig{Drain: 50 * time.Millisecond})
	h.say(modernLine("1", "wait", `{}`))
	soon(t, r.probe.entered, "call")
	_ = h.in.Close()
	soon(t, h.ended, "the end in spite of a call")
}

// TestStdioServerRestart: a host that initialised before the restart goes on after it; while
// no server runs, each call is told so.
func TestStdioServerRestart(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{})
	h.say(stdioInit)
	h.hear()
	h.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	h.say(modernLine("1", "wait", `{}`))
	soon(t, r.probe.entered, "call")
	cfg := r.srv.cfg
	r.stop()
	if m := h.hear(); m.Error == nil || !strings.Contains(string(m.Error.Data), "outcome_unknown") {
		t.Errorf("a call cut off: %+v", m)
	}
	h.say(legacyLine("2", "echo", `{}`))
	if m := h.hear(); m.Error == nil || string(m.ID) != "2" || !strings.Contains(string(m.Error.Data), "unavailable") {
		t.Errorf("no server: %+v", m)
	}
	r.serve(cfg, nil)
	for _, line := range []string{legacyLine("3", "echo", `{}`), modernLine("3", "echo", `{}`), legacyLine("3", "echo", `{}`)} {
		h.say(line)
		if m := h.hear(); m.Error != nil || string(m.ID) != "3" {
			t.Errorf("after the restart: %+v", m.Error)
		}
	}
}

// TestStdioFullSurface lists what the default leaves out.
func TestStdioFullSurface(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{Full: true})
	h.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
	if l := soon(t, h.lines, "tools"); !strings.Contains(l, "hidden_echo") {
		t.Errorf("%.200s", l)
	}
}

// TestStdioRefusedToken: a stale token is an answer, not silence.
func TestStdioRefusedToken(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{Token: "wcx_old"})
	h.say(modernLine("1", "echo", `{}`))
	if m := h.hear(); m.Error == nil || string(m.ID) != "1" {
		t.Errorf("%+v", m)
	}
}

// TestStdioSubscription: what the server says outside of any request reaches a legacy host,
// also after the server has restarted.
func TestStdioSubscription(t *testing.T) {
	r := newRig(t)
	h := r.host(StdioConfig{})
	h.say(stdioInit)
	h.hear()
	h.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	id := r.begin(r.access.Principal().Actor)
	subscribed := func() {
		t.Helper()
		h.say(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + handoffPrefix + string(id) + handoffSuffix + `"}}`)
		if m := h.hear(); m.Error != nil || string(m.ID) != "2" {
			t.Fatalf("%+v", m.Error)
		}
		r.srv.sessionChanged(id)
		if m := h.hear(); m.Method != "notifications/resources/updated" || !strings.Contains(string(m.Params), string(id)) {
			t.Fatalf("%+v", m)
		}
	}
	subscribed()
	cfg := r.srv.cfg
	r.stop()
	r.serve(cfg, nil)
	subscribed()
}
