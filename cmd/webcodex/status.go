package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"
)

func statusCommand() command {
	return command{
		name: "status", short: "say whether a server runs, and how it does",
		long: "Exit status 3 where no server runs on the data directory.",
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			return func(ctx context.Context, s streams, _ []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				return status(ctx, s, dir, *asJSON)
			}
		},
	}
}

// statusOut is `status --json`: the process's own facts and the output of get_runtime_status.
type statusOut struct {
	Running bool            `json:"running"`
	Server  *serverStatus   `json:"server"`
	Runtime json.RawMessage `json:"runtime"`
}

func status(ctx context.Context, s streams, dir string, asJSON bool) error {
	st, err := askStatus(ctx, dir)
	if errors.Is(err, errNoServer) {
		if asJSON {
			if err := printJSON(s.out, statusOut{}); err != nil {
				return err
			}
			return quietly(exitNoServer)
		}
		return failf(exitNoServer, "no server runs on %s: start one with `webcodex up`", dir)
	}
	if err != nil {
		return err
	}
	if !asJSON {
		return showStatus(s, st)
	}
	w, err := openWindow(ctx, dir)
	if err != nil {
		return err
	}
	defer w.close()
	res, err := w.call(ctx, "get_runtime_status", json.RawMessage("{}"))
	if err != nil {
		return err
	}
	if res.IsError {
		return res.fault()
	}
	return printJSON(s.out, statusOut{Running: true, Server: &st, Runtime: res.Output})
}

func askStatus(ctx context.Context, dir string) (serverStatus, error) {
	var st serverStatus
	c, err := connectControl(ctx, dir)
	if err != nil {
		return st, err
	}
	defer c.close()
	return st, c.get(ctx, pathStatus, nil, &st)
}

func showStatus(s streams, st serverStatus) error {
	p := &page{w: s.out}
	p.linef("webcodex runs (pid %d, up %s)", st.PID, (time.Duration(st.UptimeSecs) * time.Second).String())
	p.field("MCP", st.MCPURL)
	p.field("public", st.PublicURL)
	for i, name := range st.Projects {
		label := ""
		if i == 0 {
			label = "projects"
		}
		p.field(label, name)
	}
	p.field("sessions", fmt.Sprintf("%d", st.Sessions))
	p.field("log", fmt.Sprintf("commit %d, durability %s, %s of %s", st.Log.Seq, st.Log.Durability,
		size(uint64(max(0, st.Log.Bytes))), size(uint64(max(0, st.Log.MaxBytes)))))
	if st.Refuses != "" {
		p.field("attention", "new work is refused: "+st.Refuses)
	}
	for _, what := range st.Attention {
		p.field("attention", what)
	}
	p.field("data", st.DataDir)
	return p.err
}
