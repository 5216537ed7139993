package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"webcodex/eventlog"
	"webcodex/internal/fault"
)

// Paths of the control plane, served on the control socket only.
const (
	pathProjects = "/control/projects" // POST addProject → added
	pathStatus   = "/control/status"   // GET → serverStatus
	pathSessions = "/control/sessions" // GET → list_sessions' output
	pathReplay   = "/control/replay"   // GET → one JSON line a commit, or the Session as it was
	pathTokens   = "/control/tokens"   // GET → access.TokenList; POST access.CreateIn → access.Issued
	pathRunners  = "/control/runners"  // GET → access.RunnerList; POST access.RunnerIn → access.RunnerIssued
	pathHistory  = "/control/history"  // GET → history.Report
	pathBackup   = "/control/backup"   // GET → backupHead, then the stored body of each commit, one a line
	pathVerify   = "/control/verify"   // GET → eventlog.VerifyReport
	pathAttach   = "/control/attach"   // GET, open for as long as a window is there
)

// maxControlBody bounds a request to the control plane.
const maxControlBody = 64 << 10

// addProject asks to serve one more directory (ruling 14).
type addProject struct {
	Path string `json:"path"`
	// Durability, where given, is what the server has to promise.
	Durability eventlog.Durability `json:"durability,omitempty"`
}

// added answers addProject: the ready line, and what the ready block says besides.
type added struct {
	ready
	PublicURL  string `json:"public_url"`
	Durability string `json:"durability"`
}

// serverStatus is what the process knows about itself.
type serverStatus struct {
	PID        int      `json:"pid"`
	Instance   string   `json:"server_instance"`
	Build      build    `json:"build"`
	MCPURL     string   `json:"mcp_url"`
	PublicURL  string   `json:"public_url,omitempty"`
	DataDir    string   `json:"data_dir"`
	UptimeSecs int64    `json:"uptime_secs"`
	Projects   []string `json:"projects"`
	Sessions   int      `json:"sessions"`
	Runners    int      `json:"runners"`
	InFlight   int      `json:"calls_in_flight"`
	LastCommit string   `json:"last_commit_at,omitempty"`
	// Refuses is why new work is refused; empty: it is taken.
	Refuses string `json:"refuses,omitempty"`
	// Attention holds what a person should know of the files beside the log.
	Attention []string        `json:"attention,omitempty"`
	Log       eventlog.Status `json:"log"`
}

// control is the client of a running server's control socket.
type control struct {
	dir  string
	http *http.Client
}

// connectControl checks that a server answers. Its error is errNoServer, or tells why not.
func connectControl(ctx context.Context, dir string) (*control, error) {
	if err := findServer(ctx, dir); err != nil {
		return nil, err
	}
	return &control{dir: dir, http: &http.Client{Transport: socketTransport(dir)}}, nil
}

// socketTransport speaks HTTP to the control socket whatever the URL's host says.
func socketTransport(dir string) *http.Transport {
	return &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dialControl(ctx, dir) },
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
	}
}

func (c *control) close() { c.http.CloseIdleConnections() }

// get asks for JSON; query may be nil.
func (c *control) get(ctx context.Context, path string, query url.Values, out any) error {
	body, err := c.open(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(out)
}

func (c *control) post(ctx context.Context, path string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	body, err := c.open(ctx, http.MethodPost, path, nil, b)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(out)
}

// open makes a request and gives the body of a good answer; a bad one becomes its fault.
func (c *control) open(ctx context.Context, method, path string, query url.Values, in []byte) (io.ReadCloser, error) {
	u := url.URL{Scheme: "http", Host: "control", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil && ctx.Err() == nil {
		// A connection that breaks is a server that goes: a killed one can still be connected
		// to while a child of it is between fork and exec.
		return nil, failf(exitNoServer, "%w any more: start it again with `webcodex up` (%v)", errNoServer, unwrapURL(err))
	}
	if err != nil {
		return nil, ctx.Err()
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	f := &fault.Error{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxControlBody)).Decode(f); err != nil || f.Kind == "" {
		return nil, failf(exitFailed, "the server is of another version (%s): restart it with this one", resp.Status)
	}
	return nil, f
}

func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// answer writes a control answer.
func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		v = asFault(err)
	}
	_ = json.NewEncoder(w).Encode(v)
}

// asFault keeps the sentence of our own command-line errors, which the client prints as its own.
func asFault(err error) *fault.Error {
	var x *exitError
	if errors.As(err, &x) {
		kind := fault.Unavailable
		switch x.code {
		case exitUsage:
			kind = fault.InvalidArguments
		case exitAccess:
			kind = fault.InsufficientScope
		}
		return fault.New(kind, "%s", x.Error())
	}
	return fault.As(err)
}
