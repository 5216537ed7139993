package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/commands/call"
	"webcodex/projections/session"
)

// Config of a Server. Kernel, Access and Listen are required.
type Config struct {
	Kernel *call.Kernel
	// Sessions serves completion of Session ids; nil: none are offered.
	Sessions *session.Store
	Access   *Access
	// Listen is the bound TCP address, host:port; the Host allow-list follows from it.
	Listen string
	// PublicURL is what hosts outside reach a tunnel under; empty: none.
	PublicURL string
	Version   string
	// Profile is the guidance profile of hosts that tell none of their own; empty: direct.
	Profile string
	Logger  *slog.Logger
	// Tools is the catalogue served; nil: Catalogue().
	Tools []Tool
	// Heartbeat overrides the interval of heartbeats; 0: the default.
	Heartbeat time.Duration
	// progress overrides when progress is told; zero: the default.
	progress pace
	// Extend adds to the SDK server what is not in the catalogue. Only the conformance build
	// sets it: its fixtures must run through the same stack.
	Extend Extension
}

// Extension lets the conformance build add fixtures to the product's stack.
type Extension struct {
	Options func(*sdk.ServerOptions)
	Server  func(*sdk.Server)
}

// Server is the MCP edge: three protocol revisions on one endpoint.
type Server struct {
	cfg       Config
	hosts     hostList
	direct    *sdk.Server
	full      *sdk.Server
	stateless http.Handler
	stateful  http.Handler
	exchanges exchanges
	answering answering
	legacy    legacySessions
	known     map[string]bool // JSON-RPC methods that the SDK handles
	touched   touched
	live      live
	once      sync.Once
	closed    chan struct{}
	// inputs are the tools' schemas as the modern era lists them.
	inputs map[string]json.RawMessage
}

// New wires a Server. Errors: a tool that cannot be described, a public URL that is none.
func New(cfg Config) (*Server, error) {
	if cfg.Kernel == nil || cfg.Access == nil {
		return nil, fmt.Errorf("mcp: kernel and access are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Tools == nil {
		cfg.Tools = Catalogue()
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = heartbeatEvery
	}
	if cfg.progress == (pace{}) {
		cfg.progress = pace{firstProgress, progressEvery}
	}
	hosts, err := newHostList(cfg.Listen, cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, hosts: hosts, known: knownMethods(), closed: make(chan struct{})}
	if s.inputs, err = envelopedInputs(cfg.Tools); err != nil {
		return nil, err
	}
	if s.direct, err = s.surface(false); err != nil {
		return nil, err
	}
	if s.full, err = s.surface(true); err != nil {
		return nil, err
	}
	pick := func(r *http.Request) *sdk.Server {
		if r.URL.Query().Get("surface") == "full" {
			return s.full
		}
		return s.direct
	}
	// One handler serves one era in full; the dispatcher chooses (docs/decisions).
	s.stateless = sdk.NewStreamableHTTPHandler(pick, &sdk.StreamableHTTPOptions{Stateless: true,
		DisableLocalhostProtection: true, MaxRequestBodyBytes: MaxBody, PropagateRequestCancellation: true})
	s.stateful = sdk.NewStreamableHTTPHandler(pick, &sdk.StreamableHTTPOptions{
		DisableLocalhostProtection: true, MaxRequestBodyBytes: MaxBody, SessionTimeout: legacySessionIdle})
	if cfg.Access.second != nil {
		go s.sweeps()
	}
	return s, nil
}

// surface makes the SDK server of one tool surface.
func (s *Server) surface(full bool) (*sdk.Server, error) {
	//lint:ignore SA1019 logging is served while the legacy eras are
	logging := &sdk.LoggingCapabilities{}
	opts := &sdk.ServerOptions{
		Instructions: Instructions,
		// tools/list never changes in the life of a server.
		//lint:ignore SA1019 logging is served while the legacy eras are
		Capabilities: &sdk.ServerCapabilities{Logging: logging, Tools: &sdk.ToolCapabilities{},
			Prompts: &sdk.PromptCapabilities{}, Resources: &sdk.ResourceCapabilities{Subscribe: true}},
		CompletionHandler:         s.complete,
		SubscribeHandler:          s.subscribe,
		UnsubscribeHandler:        func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		SupportedProtocolVersions: versions,
		SetCacheable:              cacheable,
	}
	if s.cfg.Extend.Options != nil {
		s.cfg.Extend.Options(opts)
	}
	srv := sdk.NewServer(&sdk.Implementation{Name: "webcodex", Title: "WebCodex", Version: s.cfg.Version}, opts)
	for _, t := range s.cfg.Tools {
		if !t.Direct && !full {
			continue
		}
		w, err := t.wire()
		if err != nil {
			return nil, fmt.Errorf("mcp: describe %s: %w", t.Spec.Name, err)
		}
		srv.AddTool(w, unreached)
	}
	s.addPrompts(srv)
	s.addResources(srv)
	if s.cfg.Extend.Server != nil {
		s.cfg.Extend.Server(srv)
	}
	srv.AddReceivingMiddleware(s.guardPanics, s.admit, s.trackLegacy, s.listTools, s.callTools)
	return srv, nil
}

// HTTPServer wraps a handler with the limits of a listener that strangers may reach.
func HTTPServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 0,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
}

// Close ends the sessions of the legacy eras. It is for the end of a server whose kernel has
// drained: answers that are being written go out first.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closed)
		s.answering.wait(answerTime)
		for _, srv := range []*sdk.Server{s.direct, s.full} {
			for ss := range srv.Sessions() {
				go func() { _ = ss.Close() }()
			}
		}
	})
}
