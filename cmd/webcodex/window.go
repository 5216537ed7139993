package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"webcodex/internal/fault"
	"webcodex/mcp"
	"webcodex/mcp/client"
)

// window is one MCP client's connection to a server.
type window struct {
	client  *client.Client
	release func()
}

// openWindow connects over the control socket of a data directory, or says errNoServer.
func openWindow(ctx context.Context, dir string) (*window, error) {
	if err := findServer(ctx, dir); err != nil {
		return nil, err
	}
	token, err := mcp.ReadToken(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoServer
	}
	if err != nil {
		return nil, err
	}
	addr, release, err := socketAddr(dir)
	if err != nil {
		return nil, err
	}
	w, err := connectWindow(ctx, client.Options{Socket: addr, Token: token})
	if err != nil {
		release()
		return nil, err
	}
	w.release = release
	return w, nil
}

// dialWindow connects over HTTP, as a host does.
func dialWindow(ctx context.Context, url, token string) (*window, error) {
	return connectWindow(ctx, client.Options{URL: url, Token: token})
}

func connectWindow(ctx context.Context, o client.Options) (*window, error) {
	c, err := client.Connect(ctx, o)
	switch {
	case err == nil:
		return &window{client: c, release: func() {}}, nil
	case errors.Is(err, client.ErrNoServer):
		return nil, errNoServer
	case errors.Is(err, client.ErrUnauthorised):
		return nil, failf(exitAccess, "the server does not take the token of this data directory: restart it")
	}
	return nil, err
}

// close gives the connection up; what it asked for goes on.
func (w *window) close() {
	_ = w.client.Close()
	w.release()
}

// toolResult is a tool's answer.
type toolResult struct{ client.Result }

// call makes one call. An answer that is an error is no Go error: see toolResult.fault.
func (w *window) call(ctx context.Context, tool string, args json.RawMessage) (toolResult, error) {
	res, err := w.client.CallTool(ctx, tool, args)
	var rpc *client.RPCError
	switch {
	case err == nil:
		return toolResult{res}, nil
	case errors.As(err, &rpc):
		var data struct {
			Kind fault.Kind `json:"error_kind"`
		}
		_ = json.Unmarshal(rpc.Data, &data)
		if data.Kind == fault.UnknownTool {
			return toolResult{}, usagef("there is no tool %q: `webcodex call read_tool_manifest` lists them", tool)
		}
		return toolResult{}, failf(exitFailed, "the server refused the call: %s", rpc.Message)
	case errors.Is(err, client.ErrNoServer):
		return toolResult{}, failf(exitNoServer, "the server has gone: start it again with `webcodex up`")
	case errors.Is(err, client.ErrUnauthorised):
		return toolResult{}, failf(exitAccess, "the server does not take the token of this data directory: restart it")
	case ctx.Err() != nil:
		return toolResult{}, ctx.Err()
	case errors.Is(err, client.ErrBroken):
		return toolResult{}, failf(exitNoServer, "the connection broke; the call may have run: see `webcodex sessions` and `webcodex handoff SESSION`")
	}
	return toolResult{}, failf(exitFailed, "the call's answer cannot be read; the call may have run: %v", err)
}

// fault is the refusal or failure that an answer with isError tells. Its exit status is
// always that of a failed call.
func (r toolResult) fault() error {
	f := &fault.Error{}
	if err := json.Unmarshal(r.Output, f); err != nil || f.Kind == "" {
		return failf(exitFailed, "the tool failed: %s", r.Text)
	}
	return failf(exitFailed, "%s: %s", f.Kind, r.sentence())
}

// sentence is the error text without its first line, as one line.
func (r toolResult) sentence() string {
	if r.Error != "" {
		return r.Error
	}
	return r.Text
}
