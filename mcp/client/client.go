// Package client is a small MCP client for this project's own commands, its demo and its
// tests: it speaks to a server over TCP or over the unix socket of its data directory and
// gives results in the shape of shapes.md 3.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options of Connect. Token, and one of URL and Socket, are required.
type Options struct {
	URL    string // http://host:port/mcp
	Socket string // path of the unix socket; wins over URL
	Token  string
	// Version asks for one protocol revision; empty: the newest that both sides speak.
	Version string
	// Full lists every tool.
	Full bool
	// Name tells the server who asks; empty: webcodex.
	Name string
	// Meta goes with each tool call, as a host would say what it is about; nil: nothing does.
	Meta map[string]any
	// Progress is told of progress on calls; nil: none is asked for.
	Progress func(message string)
}

// ErrUnauthorised tells that the server did not take the token.
var ErrUnauthorised = errors.New("the server did not take the token")

// ErrNoServer tells that nobody listens at the socket or the address.
var ErrNoServer = errors.New("no server is running there")

// ErrBroken tells that the connection ended after the call was sent and before its answer
// came: nobody knows from here whether the call ran.
var ErrBroken = errors.New("the connection broke before the answer came")

// Client is one connection. It is safe for concurrent use.
type Client struct {
	session  *sdk.ClientSession
	progress bool
	meta     map[string]any
}

// Connect opens a connection. Errors: ErrNoServer, ErrUnauthorised, others from the wire.
func Connect(ctx context.Context, o Options) (*Client, error) {
	t := &auth{token: o.Token, next: &http.Transport{DisableCompression: true}}
	url := o.URL
	if o.Socket != "" {
		url = "http://webcodex/mcp"
		t.next.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", o.Socket)
		}
	}
	if o.Full {
		url += "?surface=full"
	}
	if o.Name == "" {
		o.Name = "webcodex"
	}
	opts := &sdk.ClientOptions{}
	if o.Progress != nil {
		opts.ProgressNotificationHandler = func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { o.Progress(r.Params.Message) }
	}
	c := sdk.NewClient(&sdk.Implementation{Name: o.Name, Version: "1"}, opts)
	s, err := c.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: t},
		DisableStandaloneSSE: true, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: o.Version})
	if err != nil {
		return nil, t.explain(err)
	}
	return &Client{session: s, progress: o.Progress != nil, meta: o.Meta}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.session.Close() }

// Version is the protocol revision agreed on.
func (c *Client) Version() string { return c.session.InitializeResult().ProtocolVersion }

// Instructions are the server's words to a model.
func (c *Client) Instructions() string { return c.session.InitializeResult().Instructions }

// Session is the SDK's session, for what this package does not wrap.
func (c *Client) Session() *sdk.ClientSession { return c.session }

// ListTools lists the tools of the surface.
func (c *Client) ListTools(ctx context.Context) ([]*sdk.Tool, error) {
	var out []*sdk.Tool
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Result is one tool's answer.
type Result struct {
	// IsError: refused, failed inside, or outcome unknown (ruling 9).
	IsError bool            `json:"is_error"`
	Success bool            `json:"success"`
	Output  json.RawMessage `json:"output"`
	Error   string          `json:"error,omitempty"`
	// Text is what a model reads.
	Text string `json:"-"`
	// Raw is the CallToolResult as received.
	Raw *sdk.CallToolResult `json:"-"`
}

// Decode reads the output into v.
func (r Result) Decode(v any) error { return json.Unmarshal(r.Output, v) }

// Kind is the error_kind of the output, empty where there is none.
func (r Result) Kind() string {
	var o struct {
		Kind string `json:"error_kind"`
	}
	_ = json.Unmarshal(r.Output, &o)
	return o.Kind
}

// RPCError is a JSON-RPC error in place of a result, for example for an unknown tool.
type RPCError struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

// Error is code and message.
func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// CallTool calls a tool. args is anything that encodes to a JSON object, json.RawMessage
// included; nil is no arguments. Errors: *RPCError, ErrNoServer, ErrUnauthorised, ErrBroken,
// ctx.
func (c *Client) CallTool(ctx context.Context, name string, args any) (Result, error) {
	p := &sdk.CallToolParams{Meta: maps.Clone(c.meta), Name: name, Arguments: args}
	if c.progress {
		p.SetProgressToken(name)
	}
	raw, err := c.session.CallTool(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		return Result{}, explainCall(err)
	}
	return read(raw)
}

// read takes the text of a result, whose numbers are exact, and the structure of an error,
// whose text is prose.
func read(raw *sdk.CallToolResult) (Result, error) {
	r := Result{IsError: raw.IsError, Raw: raw}
	for _, c := range raw.Content {
		if t, ok := c.(*sdk.TextContent); ok && r.Text == "" {
			r.Text = t.Text
		}
	}
	body := []byte(r.Text)
	if raw.IsError {
		var err error
		if body, err = json.Marshal(raw.StructuredContent); err != nil {
			return r, err
		}
	}
	var e struct {
		Success bool            `json:"success"`
		Output  json.RawMessage `json:"output"`
		Error   string          `json:"error"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return r, fmt.Errorf("the result of the tool has an unknown shape: %w", err)
	}
	r.Success, r.Output, r.Error = e.Success, e.Output, e.Error
	return r, nil
}

// explainCall is explain for a request that was sent. What neither the server said nor came
// before the sending is a connection that broke.
func explainCall(err error) error {
	var rpc *RPCError
	var sent *url.Error
	e := explain(err)
	switch {
	case errors.Is(e, ErrNoServer), errors.Is(e, ErrUnauthorised):
		return e
	case errors.As(e, &rpc) && !errors.As(err, &sent):
		return e
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

func explain(err error) error {
	var op *net.OpError
	var rpc *jsonrpc.Error
	switch {
	case errors.Is(err, ErrUnauthorised):
		return ErrUnauthorised
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("%w (%v)", ErrNoServer, op.Err)
	case errors.As(err, &rpc):
		return &RPCError{rpc.Code, rpc.Message, rpc.Data}
	}
	return err
}

// auth adds the token and remembers a refusal of it.
type auth struct {
	token string
	next  *http.Transport
}

func (a *auth) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	resp, err := a.next.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		return nil, ErrUnauthorised
	}
	return resp, err
}

// explain looks into errors of Connect, which the SDK flattens to text in places.
func (a *auth) explain(err error) error {
	if strings.Contains(err.Error(), ErrUnauthorised.Error()) {
		return ErrUnauthorised
	}
	if strings.Contains(err.Error(), "dial ") {
		return fmt.Errorf("%w: %v", ErrNoServer, err)
	}
	return explain(err)
}
