package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"webcodex/internal/fault"
	"webcodex/mcp"
)

func mcpCommand() command {
	return command{
		name: "mcp", args: "[DIR]", max: 1, short: "MCP over stdio, for hosts that start a command",
		long: `Speaks MCP on stdin and stdout for the running server of the data directory, and adds DIR
(default: the git repository around the working directory) to it. Where no server runs, one
is brought up in the background; it ends by itself when no window has used it for 30 min.`,
		setup: func(fs *flag.FlagSet) action {
			data := dataFlag(fs)
			surface := fs.String("surface", "", "which tools stand in the list: `full` for all")
			return func(ctx context.Context, s streams, args []string) error {
				if *surface != "" && *surface != "full" {
					return usagef("--surface is full, or absent")
				}
				return stdio(ctx, s, *data, *surface, args)
			}
		},
	}
}

func stdio(ctx context.Context, s streams, data, surface string, args []string) error {
	dir, err := dataDir(data)
	if err != nil {
		return err
	}
	root, err := projectRoot(args)
	if err != nil {
		return err
	}
	if err := makeDataDir(dir, root); err != nil {
		return err
	}
	h := &hostLink{dir: dir, root: root, kept: func() {}}
	defer func() { h.kept() }()
	if err := h.ensure(ctx); err != nil {
		return err
	}
	token, err := mcp.ReadToken(dir)
	if err != nil {
		return err
	}
	return mcp.ServeStdio(ctx, s.in, s.out, mcp.StdioConfig{Token: token, Full: surface == "full", Dial: h.dial,
		Logger: slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn}))})
}

// hostLink keeps a host's window attached to a running server.
type hostLink struct {
	dir, root string
	mu        sync.Mutex
	kept      func() // ends the attachment
}

// dial connects for one message; a server that has gone is brought up again.
func (h *hostLink) dial(ctx context.Context) (net.Conn, error) {
	c, err := dialControl(ctx, h.dir)
	if !errors.Is(err, errNoServer) {
		return c, err
	}
	if err := h.ensure(ctx); err != nil {
		return nil, err
	}
	return dialControl(ctx, h.dir)
}

// ensure has a server serve the Project, and stays attached to it so that it does not end as
// unused while the host is there.
func (h *hostLink) ensure(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := attach(ctx, h.dir, h.root, "")
	if errors.Is(err, errNoServer) {
		if err = startDetached(ctx, h.dir, h.root); err == nil {
			_, err = attach(ctx, h.dir, h.root, "")
		}
	}
	if errors.Is(err, errNoServer) {
		return failf(exitNoServer, "the server has gone: see %s in the data directory", serverLog)
	}
	if err != nil && fault.As(err).Reason != noRunner { // that one's Projects are its Runners'
		return err
	}
	c, err := connectControl(ctx, h.dir)
	if err != nil {
		return err
	}
	body, err := c.open(context.WithoutCancel(ctx), http.MethodGet, pathAttach, nil, nil)
	if err != nil {
		c.close()
		return err
	}
	h.kept()
	h.kept = func() { body.Close(); c.close() }
	return nil
}
