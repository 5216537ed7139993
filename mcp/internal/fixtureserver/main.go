// Command fixtureserver serves the fixtures that the MCP conformance suite asks for on the
// product's own HTTP stack: dispatcher, middleware, heartbeat and all. It is for tests only.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/commands/call"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp"
	"webcodex/projections/session"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// nobody is a fleet without Runners; no fixture needs one.
type nobody struct{ call.Fleet }

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fixtureserver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, instance := session.NewStore(), event.NewInstanceID()
	log, err := eventlog.Open(ctx, eventlog.Options{Dir: dir, Durability: eventlog.Process, MaxBytes: 64 << 20,
		Server: instance, Folds: []eventlog.Fold{store}})
	if err != nil {
		return err
	}
	defer log.Close()
	access, err := mcp.OpenAccess(dir, true)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	kernel := call.NewKernel(call.Config{Log: log, Sessions: store, Fleet: nobody{}, Server: instance, Now: time.Now})
	srv, err := mcp.New(mcp.Config{Kernel: kernel, Access: access, Listen: ln.Addr().String(), Version: "fixtures",
		Tools: []mcp.Tool{}, Extend: mcp.Extension{Options: options, Server: func(s *sdk.Server) { register(ctx, s) }}})
	if err != nil {
		return err
	}
	return serve(ctx, ln, srv, access)
}

func serve(ctx context.Context, ln net.Listener, srv *mcp.Server, access *mcp.Access) error {
	hs := mcp.HTTPServer(srv.Handler())
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(ln) }()
	line, err := json.Marshal(map[string]any{"ready": true, "mcp_url": "http://" + ln.Addr().String() + "/mcp",
		"token": access.Token(), "pid": os.Getpid()})
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	srv.Close()
	if err := hs.Close(); err != nil && err != http.ErrServerClosed {
		return err
	}
	return nil
}

// options let the lists change: the product's never do.
func options(o *sdk.ServerOptions) {
	o.Capabilities.Tools = &sdk.ToolCapabilities{ListChanged: true}
	o.Capabilities.Prompts = &sdk.PromptCapabilities{ListChanged: true}
	o.Capabilities.Resources = &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true}
}

func register(ctx context.Context, s *sdk.Server) {
	addContent(s)
	addClientRequests(s)
	addDiagnostics(s)
	addInputRequired(s)
	addResources(s)
	addPrompts(s)
	go updateWatched(ctx, s)
}

// updateWatched tells subscribers of the watched resource every 3 seconds.
func updateWatched(ctx context.Context, s *sdk.Server) {
	t := time.NewTicker(3 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = s.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: watched})
		}
	}
}
