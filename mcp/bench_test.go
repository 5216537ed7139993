package mcp

import (
	"context"
	"net"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/mcp/client"
)

// BenchmarkCall is one call over TCP, without evidence; BenchmarkBareCall the same to a no-op
// tool on a bare SDK server. Their difference is what the edge costs.
func BenchmarkCall(b *testing.B) {
	r := newRig(b)
	c, err := client.Connect(context.Background(), client.Options{URL: r.url, Token: r.access.Token()})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	benchCall(b, c.Session())
}

func BenchmarkBareCall(b *testing.B) {
	s := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	hs := &http.Server{Handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})}
	go func() { _ = hs.Serve(ln) }()
	defer hs.Close()
	c := sdk.NewClient(&sdk.Implementation{Name: "b", Version: "1"}, nil)
	ses, err := c.Connect(context.Background(), &sdk.StreamableClientTransport{Endpoint: "http://" + ln.Addr().String(), DisableStandaloneSSE: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer ses.Close()
	benchCall(b, ses)
}

func benchCall(b *testing.B, s *sdk.ClientSession) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}}); err != nil {
			b.Fatal(err)
		}
	}
}
