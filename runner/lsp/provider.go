package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"webcodex/internal/fault"
	"webcodex/runner"
)

// provider is one running language server of one Project.
type provider struct {
	kind    *kind
	project *runner.Project
	root    string // the Project's directory, links resolved, as the server knows it
	cmd     *exec.Cmd
	conn    *jsonrpc2.Conn
	caps    capabilities
	version string
	dead    chan struct{} // closed when its process has ended
	asked   atomic.Uint64 // requests so far; each has its number

	// telling is held while files are compared and told of, so that no request comes between.
	telling sync.Mutex
	files   files

	mu       sync.Mutex
	used     time.Time
	busy     int
	mute     time.Time // since when it is asked and has said nothing; zero: nothing is open, or it spoke
	patience time.Duration
	stopped  bool // by us
	progress map[string]bool
	unquiet  bool                 // it said that it is not through with the Project yet
	found    map[string]published // newest diagnostics by URI
	changed  chan struct{}        // closed at the next change of progress or found
}

func newProvider(k *kind, p *runner.Project, root string) *provider {
	return &provider{kind: k, project: p, root: root, dead: make(chan struct{}), files: newFiles(k, p), used: time.Now(), patience: muteAfter,
		progress: map[string]bool{}, found: map[string]published{}, changed: make(chan struct{})}
}

// uri names a file of the Project.
func (p *provider) uri(path string) string {
	at := p.root
	if path != "" {
		at += "/" + path
	}
	return (&url.URL{Scheme: "file", Path: at}).String()
}

// initialize is the handshake.
func (p *provider) initialize(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	at := p.uri("")
	in := map[string]any{
		"processId": nil, "clientInfo": map[string]any{"name": "webcodex"}, "rootUri": at,
		"workspaceFolders":      []map[string]any{{"uri": at, "name": p.project.Name}},
		"initializationOptions": p.kind.settings,
		"capabilities":          clientCapabilities,
	}
	var out initialized
	if err := p.ask(ctx, "initialize", in, &out); err != nil {
		return err
	}
	p.caps, p.version = out.Capabilities, shortVersion(out.Server.Version)
	if p.caps.Encoding == "" {
		p.caps.Encoding = utf16Units
	}
	if err := p.conn.Notify(ctx, "initialized", struct{}{}); err != nil {
		return p.broken(err)
	}
	return nil
}

var clientCapabilities = map[string]any{
	"general": map[string]any{"positionEncodings": []string{utf32Units, utf16Units, utf8Units}},
	"window":  map[string]any{"workDoneProgress": true},
	"workspace": map[string]any{
		"configuration": true, "workspaceFolders": true, "symbol": map[string]any{},
		"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true},
	},
	"textDocument": map[string]any{
		"synchronization": map[string]any{}, "definition": map[string]any{"linkSupport": true}, "references": map[string]any{},
		"documentSymbol": map[string]any{"hierarchicalDocumentSymbolSupport": true}, "callHierarchy": map[string]any{},
		"hover":              map[string]any{"contentFormat": []string{"markdown", "plaintext"}},
		"publishDiagnostics": map[string]any{"versionSupport": true}, "diagnostic": map[string]any{},
	},
	"experimental": map[string]any{"serverStatusNotification": true},
}

// ask makes one request. When ctx ends first the server is told that nobody waits.
func (p *provider) ask(ctx context.Context, method string, in, out any) error {
	p.waits()
	number := jsonrpc2.ID{Num: p.asked.Add(1)}
	w, err := p.conn.DispatchCall(ctx, method, in, jsonrpc2.PickID(number))
	if err != nil {
		return p.broken(err)
	}
	var raw json.RawMessage
	err = w.Wait(ctx, &raw)
	var refused *jsonrpc2.Error
	if err == nil || errors.As(err, &refused) {
		p.spoke()
	}
	switch {
	case err == nil && out == nil:
		return nil
	case err == nil:
		if err := json.Unmarshal(raw, out); err != nil {
			return fault.Wrap(err, fault.LSPProtocolError, "%s gave an answer that cannot be read", p.kind.name)
		}
		return nil
	case ctx.Err() != nil:
		_ = p.conn.Notify(context.WithoutCancel(ctx), "$/cancelRequest", map[string]any{"id": number})
		if errors.Is(ctx.Err(), context.Canceled) {
			return fault.Wrap(err, fault.Cancelled, "the call was cancelled")
		}
		if p.hangs() {
			go p.stop()
			return fault.Wrap(err, fault.LSPRequestTimeout, "%s said nothing for too long and was ended", p.kind.name).
				WithNext("call again: it is started anew")
		}
		return fault.Wrap(err, fault.LSPRequestTimeout, "%s did not answer in time", p.kind.name).
			WithNext("call again: it may still be reading the Project; get_lsp_status tells")
	case errors.As(err, &refused):
		return fault.Wrap(err, fault.LSPProtocolError, "%s could not answer (code %d)", p.kind.name, refused.Code)
	}
	return p.broken(err)
}

// waits notes that the server is asked, spoke that it said something, whatever that was.
func (p *provider) waits() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mute.IsZero() {
		p.mute = time.Now()
	}
}

func (p *provider) spoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = time.Time{}
}

// hangs reports that the server is asked and says nothing, as one does that waits in a file that is
// a pipe: it would not come back by itself.
func (p *provider) hangs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopped && !p.mute.IsZero() && time.Since(p.mute) > p.patience
}

func (p *provider) broken(err error) error {
	return fault.Wrap(err, fault.LSPServerFailed, "%s ended, or does not speak the protocol", p.kind.name).
		WithNext("call again: it is started anew")
}

// Handle implements jsonrpc2.Handler: what a server asks or tells its client.
func (p *provider) Handle(ctx context.Context, c *jsonrpc2.Conn, req *jsonrpc2.Request) {
	p.spoke()
	var params json.RawMessage
	if req.Params != nil {
		params = *req.Params
	}
	if req.Notif {
		p.hear(req.Method, params)
		return
	}
	var answer any
	switch req.Method {
	case "workspace/configuration":
		var q struct {
			Items []struct{} `json:"items"`
		}
		_ = json.Unmarshal(params, &q)
		all := make([]any, min(len(q.Items), 100))
		for i := range all {
			all[i] = p.kind.settings
		}
		answer = all
	case "workspace/workspaceFolders":
		answer = []map[string]any{{"uri": p.uri(""), "name": p.project.Name}}
	case "workspace/applyEdit":
		answer = map[string]any{"applied": false, "failureReason": "this client only reads"}
	case "client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest",
		"workspace/diagnostic/refresh", "workspace/semanticTokens/refresh", "workspace/inlayHint/refresh", "workspace/codeLens/refresh":
	default:
		_ = c.ReplyWithError(ctx, req.ID, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "not served"})
		return
	}
	_ = c.Reply(ctx, req.ID, answer)
}

// hear takes what a server tells of itself.
func (p *provider) hear(method string, params json.RawMessage) {
	switch method {
	case "$/progress":
		var m struct {
			Token json.RawMessage `json:"token"`
			Value struct {
				Kind string `json:"kind"`
			} `json:"value"`
		}
		if json.Unmarshal(params, &m) != nil {
			return
		}
		p.note(func() {
			switch token := string(m.Token); {
			case m.Value.Kind == "end":
				delete(p.progress, token)
			case m.Value.Kind == "begin" && len(p.progress) < maxOpen:
				p.progress[token] = true
			}
		})
	case "experimental/serverStatus":
		var m struct {
			Quiescent *bool `json:"quiescent"`
		}
		if json.Unmarshal(params, &m) == nil && m.Quiescent != nil {
			p.note(func() { p.unquiet = !*m.Quiescent })
		}
	case "textDocument/publishDiagnostics":
		var m published
		if json.Unmarshal(params, &m) != nil {
			return
		}
		p.note(func() {
			// Only what is asked about is kept.
			if _, known := p.found[m.URI]; known {
				p.found[m.URI] = m
			}
		})
	}
}

func (p *provider) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// loading reports that it has not read the whole Project yet, as far as it tells.
func (p *provider) loading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.progress) > 0 || p.unquiet
}

// until waits for a state that hear brings about; false: time was over, or the server ended.
func (p *provider) until(ctx context.Context, wait time.Duration, there func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		p.mu.Lock()
		ok, next := there(), p.changed
		p.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-next:
		case <-p.dead:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// settle gives it time to read the Project.
func (p *provider) settle(ctx context.Context) {
	p.until(ctx, loadWait, func() bool { return len(p.progress) == 0 && !p.unquiet })
}
