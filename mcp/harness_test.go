package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/aggregate"
	"webcodex/commands/attention"
	"webcodex/commands/call"
	"webcodex/commands/material"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/mcp/client"
	"webcodex/mcp/schema"
	principals "webcodex/projections/access"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// rig is one server on real listeners over a real log, with tools made for the edge's tests.
type rig struct {
	t      testing.TB
	dir    string
	srv    *Server
	access *Access
	url    string
	addr   string
	socket string
	log    *eventlog.Log
	store  *session.Store
	tokens *principals.Tokens
	second *access.Tokens
	clock  atomic.Int64 // by which tokens expire: nanoseconds ahead of the real one
	probe  *probe
	stop   func() // closes the listeners and every connection
}

// probe is how a test sees and steers the waiting tool.
type probe struct {
	entered chan struct{}
	release chan struct{}
	ended   chan error // why a waiting call ended: nil when released, else the context's error
}

type rigOption func(*Config)

func newRig(t testing.TB, opts ...rigOption) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), store: session.NewStore(), tokens: principals.NewTokens(),
		probe: &probe{entered: make(chan struct{}, 64), release: make(chan struct{}), ended: make(chan error, 64)}}
	refs := principals.NewRefs()
	var err error
	if r.log, err = eventlog.Open(context.Background(), eventlog.Options{Dir: r.dir, Durability: eventlog.Process, MaxBytes: 64 << 20,
		Server: event.NewInstanceID(), Folds: []eventlog.Fold{r.store, r.tokens, refs}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.log.Close() })
	if r.access, err = OpenAccess(r.dir, true); err != nil {
		t.Fatal(err)
	}
	r.second = access.NewTokens(aggregate.NewWriter(r.log, time.Now), r.tokens, func() []event.ProjectRegistered { return nil },
		r.access.Principal().Actor, time.Now)
	r.access.Admit(Second{Tokens: r.tokens, Now: func() time.Time { return time.Now().Add(time.Duration(r.clock.Load())) },
		Intact: func() error {
			_, err := r.log.Head(event.AccessAggregate())
			return err
		}})
	kernel := call.NewKernel(call.Config{Log: r.log, Sessions: r.store, Refs: refs, Fleet: noFleet{}, Server: event.NewInstanceID(), Now: time.Now,
		Ambient: []call.Ambient{attention.New(nil), material.New(material.Options{})},
		OnCall: func(l call.Line) {
			if l.Tool == "edge_panic" {
				panic("outside of the tool")
			}
		}})
	cfg := Config{Kernel: kernel, Sessions: r.store, Access: r.access, Version: "test", Tools: r.tools(), Heartbeat: 20 * time.Millisecond,
		progress: pace{10 * time.Millisecond, 20 * time.Millisecond}}
	r.serve(cfg, opts)
	return r
}

// listenSocket opens the socket that our own commands use, in place of a dead server's.
func listenSocket(t testing.TB, path string) *PeerListener {
	t.Helper()
	_ = os.Remove(path)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	return NewPeerListener(l, nil)
}

func (r *rig) serve(cfg Config, opts []rigOption) {
	r.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.addr = ln.Addr().String()
	cfg.Listen = r.addr
	for _, o := range opts {
		o(&cfg)
	}
	if r.srv, err = New(cfg); err != nil {
		r.t.Fatal(err)
	}
	r.url = "http://" + r.addr + "/mcp"
	r.socket = filepath.Join(r.dir, "s")
	sock := listenSocket(r.t, r.socket)
	tcp, unix := HTTPServer(r.srv.Handler()), HTTPServer(r.srv.SocketHandler())
	go func() { _ = tcp.Serve(ln) }()
	go func() { _ = unix.Serve(sock) }()
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			r.srv.Close()
			_ = tcp.Close()
			_ = unix.Close()
		})
	}
	r.t.Cleanup(r.stop)
}

// tools are one tool for each thing the edge must carry.
func (r *rig) tools() []Tool {
	tool := func(name string, class call.Class, in any, input *schema.Schema, run func(context.Context, *call.Call) (call.Result, error)) Tool {
		return Tool{Spec: &call.Spec{Name: name, Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, Class: class, In: in, Run: run},
			Title: name, Description: name, Category: "runtime", Direct: true, Input: input}
	}
	echoSchema := schema.Object(schema.Opt("text", schema.Str("", 0, 100)), schema.Opt("n", schema.Knob("")),
		schema.Opt("list", schema.List("", schema.Str("", 0, 10), 0, 3)), schema.Opt("flag", schema.Bool("")))
	echo := tool("echo", call.Observe, struct{}{}, echoSchema, func(_ context.Context, c *call.Call) (call.Result, error) {
		return call.Result{Output: json.RawMessage(c.Args)}, nil
	})
	hidden := echo
	spec := *echo.Spec
	spec.Name = "hidden_echo"
	hidden.Spec, hidden.Direct = &spec, false
	return []Tool{echo, hidden,
		tool("wait", call.Mutate, struct{}{}, schema.Object(schema.Opt("then", schema.Enum("", "fail", "panic"))), r.wait),
		tool("failed", call.Observe, struct{}{}, schema.Object(), func(context.Context, *call.Call) (call.Result, error) {
			return call.Result{Failed: true, Error: "a test failed <here>", Output: map[string]int{"exit_code": 1}}, nil
		}),
		tool("refused", call.Observe, struct{}{}, schema.Object(), func(context.Context, *call.Call) (call.Result, error) {
			return call.Result{}, fault.New(fault.EditConflict, "the file changed").WithField("changes[0].path").WithReason("stale").
				WithNext("read it again").With("conflicts", []map[string]any{{"path": "a<b"}}).With("error_kind", "forged")
		}),
		tool("tool_panic", call.Observe, struct{}{}, schema.Object(), func(context.Context, *call.Call) (call.Result, error) { panic("inside") }),
		tool("edge_panic", call.Observe, struct{}{}, schema.Object(), func(context.Context, *call.Call) (call.Result, error) { return call.Result{}, nil }),
		callRuntimeTool,
	}
}

// wait blocks until the test releases it or its context ends.
func (r *rig) wait(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[struct {
		Then string `json:"then"`
	}](c)
	if err != nil {
		return call.Result{}, err
	}
	r.probe.entered <- struct{}{}
	select {
	case <-r.probe.release:
		r.probe.ended <- nil
	case <-ctx.Done():
		r.probe.ended <- ctx.Err()
		return call.Result{}, fault.New(fault.Cancelled, "the call was cancelled")
	}
	switch in.Then {
	case "fail":
		return call.Result{}, fault.New(fault.InvalidArguments, "refused late").WithField("then")
	case "panic":
		panic("late")
	}
	return call.Result{Output: map[string]bool{"released": true}}, nil
}

// noFleet has no Runner: the edge's tools need none.
type noFleet struct{ call.Fleet }

func (noFleet) Projects() []call.ProjectInfo { return nil }
func (noFleet) Runners() []call.RunnerInfo   { return nil }
func (noFleet) Digest(wire.Offer) string     { return "" }
func (noFleet) Target(event.ProjectRef) (call.Target, error) {
	return call.Target{}, fault.New(fault.UnknownProject, "no such Project")
}

// connect opens a client of one protocol revision over TCP.
func (r *rig) connect(version string) *client.Client {
	r.t.Helper()
	c, err := client.Connect(context.Background(), client.Options{URL: r.url, Token: r.access.Token(), Version: version})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// request is one raw HTTP exchange. Headers given with an empty value are left out.
type request struct {
	method, path, body string
	header             map[string]string
	host               string
}

type response struct {
	status int
	header http.Header
	body   string
}

func (r *rig) send(q request) response {
	r.t.Helper()
	resp := r.open(context.Background(), q)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(b)}
}

func (r *rig) open(ctx context.Context, q request) *http.Response {
	r.t.Helper()
	if q.method == "" {
		q.method = http.MethodPost
	}
	if q.path == "" {
		q.path = "/mcp"
	}
	req, err := http.NewRequestWithContext(ctx, q.method, "http://"+r.addr+q.path, strings.NewReader(q.body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.access.Token())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range q.header {
		req.Header.Set(k, v)
		if v == "" {
			req.Header.Del(k)
		}
	}
	if q.host != "" {
		req.Host = q.host
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: 5 * time.Second}}).Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`

// modernCall is a tools/call of the modern era; meta is added to _meta as it stands.
func modernCall(tool, args, meta string) request {
	m := modernMeta
	if meta != "" {
		m = strings.Replace(m, `"_meta":{`, `"_meta":{`+meta+`,`, 1)
	}
	return request{body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,` + m + `}}`,
		header: map[string]string{"Mcp-Protocol-Version": Modern, "Mcp-Method": "tools/call", "Mcp-Name": tool}}
}

// initialize opens a legacy session and gives its id.
func (r *rig) initialize(version string) string {
	r.t.Helper()
	resp := r.send(request{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`})
	id := resp.header.Get("Mcp-Session-Id")
	if resp.status != http.StatusOK || id == "" {
		r.t.Fatalf("initialize: %d %s", resp.status, resp.body)
	}
	r.send(request{body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header: legacyHeader(version, id)})
	return id
}

func legacyHeader(version, session string) map[string]string {
	return map[string]string{"Mcp-Protocol-Version": version, "Mcp-Session-Id": session}
}

func legacyCall(tool, args string, header map[string]string) request {
	return request{header: header,
		body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`}
}

// rpc is a JSON-RPC message as received.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
		Version    string          `json:"protocolVersion"`
		Supported  []string        `json:"supportedVersions"`
	} `json:"result"`
	Error *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	Params json.RawMessage `json:"params"`
}

// messages reads a body that is one JSON message or a stream of events.
func messages(t *testing.T, resp response) []rpc {
	t.Helper()
	var out []rpc
	add := func(s string) {
		var m rpc
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatalf("not a message: %q: %v", s, err)
		}
		out = append(out, m)
	}
	if !strings.HasPrefix(resp.header.Get("Content-Type"), "text/event-stream") {
		add(resp.body)
		return out
	}
	for l := range strings.Lines(resp.body) {
		if data, ok := strings.CutPrefix(l, "data: "); ok {
			add(data)
		}
	}
	return out
}

// last is the last message of a response.
func last(t *testing.T, resp response) rpc {
	t.Helper()
	ms := messages(t, resp)
	if len(ms) == 0 {
		t.Fatalf("no message in %d %q", resp.status, resp.body)
	}
	return ms[len(ms)-1]
}

// soon fails the test when the channel stays silent.
func soon[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: nothing for 10 s", what)
		panic("unreachable")
	}
}
