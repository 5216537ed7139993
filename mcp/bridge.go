package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// maxEvent bounds one event of a response stream.
const maxEvent = 16 << 20

// bridge carries messages between a host's pipes and the server's socket.
type bridge struct {
	cfg      StdioConfig
	out      *lineWriter
	http     *http.Client
	life     context.Context // ends with the bridge
	inflight sync.WaitGroup

	mu      sync.Mutex
	calls   map[string]*pending // by request id
	session string              // of the legacy eras
	version string              // agreed on by initialize
	heard   string              // the session whose own stream is open
	opening []byte              // the host's initialize, to open again after a restart
	reopen  sync.Mutex          // one re-initialise at a time
}

type pending struct{ cancel context.CancelFunc }

// track makes a call cancellable by its id.
func (b *bridge) track(ctx context.Context, f frame) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if f.metaVersion < Modern {
		return ctx, cancel
	}
	id, own := string(f.id), &pending{cancel}
	b.mu.Lock()
	b.calls[id] = own
	b.mu.Unlock()
	return ctx, func() {
		b.mu.Lock()
		if b.calls[id] == own {
			delete(b.calls, id)
		}
		b.mu.Unlock()
		cancel()
	}
}

// cancelModern ends a call as the modern era does over HTTP: by closing its stream. False
// where the call is not one of that era; then the server is told.
func (b *bridge) cancelModern(f frame) bool {
	var m struct {
		Params struct {
			ID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if err := json.Unmarshal(f.body, &m); err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	call, ok := b.calls[string(m.Params.ID)]
	if ok {
		call.cancel()
		delete(b.calls, string(m.Params.ID))
	}
	return ok
}

// forward sends one message and writes what comes back. A call always gets an answer, unless
// its own cancellation ended it.
func (b *bridge) forward(ctx context.Context, f frame) {
	resp, err := b.post(ctx, f)
	if err == nil && resp.StatusCode == http.StatusNotFound && f.metaVersion < Modern && b.restored(ctx, resp) {
		resp, err = b.post(ctx, f)
	}
	if err != nil {
		b.failed(ctx, f, err)
		return
	}
	defer resp.Body.Close()
	if f.method == "initialize" && resp.StatusCode == http.StatusOK {
		b.remember(resp, f)
	}
	if f.method == "notifications/initialized" {
		b.listen()
	}
	answered, err := b.copy(resp, f)
	if f.call() && !answered {
		b.failed(ctx, f, err)
	}
}

// url of the endpoint; the host part is for show, the connection is the socket.
func (b *bridge) url() string {
	if b.cfg.Full {
		return "http://webcodex/mcp?surface=full"
	}
	return "http://webcodex/mcp"
}

func (b *bridge) post(ctx context.Context, f frame) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url(), bytes.NewReader(f.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.cfg.Token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if f.metaVersion >= Modern {
		req.Header.Set("Mcp-Protocol-Version", f.metaVersion)
		req.Header.Set("Mcp-Method", f.method)
		if name := f.target(); name != "" {
			req.Header.Set("Mcp-Name", headerValue(name))
		}
		return b.http.Do(req)
	}
	b.mu.Lock()
	session, version := b.session, b.version
	b.mu.Unlock()
	if f.method != "initialize" && session != "" {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	return b.http.Do(req)
}

// target is the name that the modern era repeats in a header.
func (f frame) target() string {
	var m struct {
		Params struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"params"`
	}
	_ = json.Unmarshal(f.body, &m)
	switch f.method {
	case "tools/call", "prompts/get":
		return m.Params.Name
	case "resources/read":
		return m.Params.URI
	}
	return ""
}

// headerValue encodes what a header cannot carry as it stands.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?")
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= 0x20 && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// remember keeps what later messages of the legacy eras need.
func (b *bridge) remember(resp *http.Response, f frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session = resp.Header.Get("Mcp-Session-Id")
	b.opening = f.body
}

// restored opens the host's session again after the server has restarted or dropped it: a
// 404 says that the message was not looked at, so it may be sent again.
func (b *bridge) restored(ctx context.Context, resp *http.Response) bool {
	b.mu.Lock()
	old, opening := b.session, b.opening
	b.mu.Unlock()
	if old == "" || opening == nil {
		return false
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxEvent))
	_ = resp.Body.Close()
	b.reopen.Lock()
	defer b.reopen.Unlock()
	b.mu.Lock()
	already := b.session != old
	b.mu.Unlock()
	if already {
		return true
	}
	first := frame{body: opening}
	if code, _ := first.parse(); code != 0 {
		return false
	}
	again, err := b.post(ctx, first)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(again.Body, maxEvent))
	_ = again.Body.Close()
	if again.StatusCode != http.StatusOK {
		return false
	}
	b.remember(again, first)
	ready, err := b.post(ctx, frame{body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), method: "notifications/initialized"})
	if err != nil {
		return false
	}
	_ = ready.Body.Close()
	b.listen()
	return true
}

// listen carries what the server says outside of any request in the legacy eras, until the
// session ends. The modern era has subscriptions/listen, which is a request.
func (b *bridge) listen() {
	b.mu.Lock()
	session, version := b.session, b.version
	fresh := session != "" && session != b.heard
	b.heard = session
	b.mu.Unlock()
	if !fresh {
		return
	}
	req, err := http.NewRequestWithContext(b.life, http.MethodGet, b.url(), nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+b.cfg.Token)
	req.Header.Set("Mcp-Session-Id", session)
	req.Header.Set("Mcp-Protocol-Version", version)
	go func() {
		resp, err := b.http.Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			_, _ = b.stream(resp.Body, frame{})
		}
	}()
}

// copy writes the messages of a response to the host; answered tells whether the call's own
// answer was among them.
func (b *bridge) copy(resp *http.Response, f frame) (answered bool, err error) {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return b.stream(resp.Body, f)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
	if err != nil {
		return false, err
	}
	if !f.call() {
		return true, nil
	}
	if own, ok := answers(body, f); ok {
		b.note(body, f)
		b.out.raw(body)
		return own, nil
	}
	return false, fmt.Errorf("the server answered with status %d", resp.StatusCode)
}

// stream copies events as they come; comments and event ids are the transport's own.
func (b *bridge) stream(r io.Reader, f frame) (answered bool, err error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxEvent)
	var data []byte
	for sc.Scan() {
		text := sc.Bytes()
		if rest, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			continue
		}
		if len(text) > 0 || len(data) == 0 {
			continue
		}
		if own, ok := answers(data, f); ok {
			answered = answered || own
			b.note(data, f)
			b.out.raw(data)
		}
		data = data[:0]
	}
	return answered, sc.Err()
}

// answers reports whether body is a message at all, and whether it answers f.
func answers(body []byte, f frame) (own, ok bool) {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Version != "2.0" {
		return false, false
	}
	return m.Method == "" && (bytes.Equal(m.ID, f.id) || string(m.ID) == "null"), true
}

// note keeps the version that initialize agreed on.
func (b *bridge) note(body []byte, f frame) {
	if f.method != "initialize" {
		return
	}
	var m struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(body, &m) == nil && m.Result.Version != "" {
		b.mu.Lock()
		b.version = m.Result.Version
		b.mu.Unlock()
	}
}

// failed answers for a server that did not. Whether a lost call took effect is not known
// unless it was never sent.
func (b *bridge) failed(ctx context.Context, f frame, err error) {
	if !f.call() || ctx.Err() != nil {
		return
	}
	sentence := "the connection to the WebCodex server ended before it answered; whether the call took effect is not known"
	kind := "outcome_unknown"
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		sentence, kind = "the WebCodex server is not running; start it with `webcodex up`", "unavailable"
	}
	b.cfg.Logger.Warn("message not answered", "method", f.method, "cause", fmt.Sprint(err))
	b.out.message(rpcErrorBody(f.id, codeInternal, sentence, map[string]string{"error_kind": kind}))
}
