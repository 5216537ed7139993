package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// BareMCP is a bare SDK server with one tool that does nothing: the least an MCP call costs.
func BareMCP() http.Handler {
	s := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "noop", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{"success":true,"output":{}}`}}}, nil
		})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})
}

// BareJetStream starts nothing but an embedded JetStream on a store directory, asks for the
// stream LOG of the account WC, reads its last commit, and stops cleanly: the least that a
// start on this store costs. ready is called once the commit is read.
func BareJetStream(store string, ready func()) error {
	opts := &server.Options{}
	if err := opts.ProcessConfigString(`accounts { WC { jetstream: enabled, users: [ { user: "a", password: "a" } ] } }`); err != nil {
		return err
	}
	opts.ServerName, opts.DontListen, opts.NoSigs, opts.NoLog = "webcodex", true, true, true
	opts.JetStream, opts.StoreDir, opts.JetStreamMaxStore = true, store, math.MaxInt64/4
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(5 * time.Minute) {
		return errors.New("the server did not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("a", "a"))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	stream, err := js.Stream(ctx, "LOG")
	if err != nil {
		return fmt.Errorf("the stream: %w", err)
	}
	if _, err := stream.GetMsg(ctx, stream.CachedInfo().State.LastSeq); err != nil {
		return fmt.Errorf("the last commit: %w", err)
	}
	ready()
	return nil
}
