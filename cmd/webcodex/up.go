package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"webcodex/eventlog"
)

// attachWait bounds how long `up` waits for the server that holds the lock to answer: it may
// be starting, or ending.
const (
	attachWait  = 20 * time.Second
	attachEvery = 100 * time.Millisecond
)

// maxRestarts bounds how often a server whose disk failed comes back by itself.
const (
	maxRestarts  = 5
	restartPause = 2 * time.Second
	restartEnv   = "WEBCODEX_RESTART"
)

// upFlags are the flags of `up`.
type upFlags struct {
	data, listen, durability, public string
	asJSON, showToken                bool
	idleExit                         time.Duration
}

func upCommand() command {
	return command{
		name: "up", args: "[DIR]", max: 1, short: "serve a repository to MCP hosts",
		long: `Starts server and Runner for DIR (default: the git repository around the working
directory), with the log in the data directory, on loopback, in the foreground with one
line per call. Ctrl-C ends it: calls in flight finish, the log is flushed and closed.
While a server runs on the data directory, up adds DIR to it and exits.

The first up of a data directory takes the first free port from 8787 and keeps it; the
token is kept as well, so hosts stay connected over restarts.`,
		setup: func(fs *flag.FlagSet) action {
			var f upFlags
			data := dataFlag(fs)
			asJSON := jsonFlag(fs)
			fs.StringVar(&f.listen, "listen", "", "`HOST:PORT` on loopback; port 0 picks a free one")
			fs.StringVar(&f.durability, "durability", string(eventlog.Always), "what an answer promises: `always` survives a power cut, process survives kill -9")
			fs.StringVar(&f.public, "public-url", "", "`URL` under which a tunnel reaches this server")
			fs.BoolVar(&f.showToken, "show-token", false, "print the token although this is no terminal")
			fs.DurationVar(&f.idleExit, "idle-exit", 0, "end after this long without a caller, for example `30m`; 0: never")
			return func(ctx context.Context, s streams, args []string) error {
				f.data, f.asJSON = *data, *asJSON
				return up(ctx, s, f, args)
			}
		},
	}
}

func up(ctx context.Context, s streams, f upFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	root, err := projectRoot(args)
	if err != nil {
		return err
	}
	dir, err := dataDir(f.data)
	if err != nil {
		return err
	}
	if err := makeDataDir(dir); err != nil {
		return err
	}
	if err := keepApart(root, dir); err != nil {
		return err
	}
	err = f.attachOrServe(ctx, s, dir, root)
	var broken *brokenLog
	if errors.As(err, &broken) {
		return restart(ctx, s, broken)
	}
	return err
}

// attachOrServe joins the running server or becomes it. While another process holds the lock
// without answering it is starting, and then answers soon, or ending, and then it is our turn.
func (f upFlags) attachOrServe(ctx context.Context, s streams, dir, root string) error {
	until := time.Now().Add(attachWait)
	for {
		r, err := attach(ctx, dir, root)
		if err == nil {
			return f.attached(s, r)
		}
		if !errors.Is(err, errNoServer) {
			return err
		}
		if err = serve(ctx, s, f, dir, root); !errors.Is(err, eventlog.ErrLocked) {
			return err
		}
		if time.Now().After(until) {
			return failf(exitNoServer, "another process holds the data directory and does not answer: wait for it, end it, or name another directory with --data")
		}
		t := time.NewTimer(attachEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f upFlags) check() error {
	switch eventlog.Durability(f.durability) {
	case eventlog.Always, eventlog.Process:
	default:
		return usagef("--durability is always or process")
	}
	if f.listen != "" {
		if _, err := loopback(f.listen); err != nil {
			return err
		}
	}
	if f.idleExit < 0 {
		return usagef("--idle-exit is a positive duration, for example 30m")
	}
	if f.public == "" {
		return nil
	}
	u, err := url.Parse(f.public)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.Trim(u.Path, "/") != "" {
		return usagef("--public-url is the address hosts on the internet use, https://NAME without a path")
	}
	return nil
}

// attach adds the directory to the running server; errNoServer where none runs.
func attach(ctx context.Context, dir, root string) (ready, error) {
	c, err := connectControl(ctx, dir)
	if err != nil {
		return ready{}, err
	}
	defer c.close()
	var a added
	if err := c.post(ctx, pathProjects, addProject{Path: root}, &a); err != nil {
		return ready{}, err
	}
	a.tokenFile, a.public, a.durable = tokenPath(dir), a.PublicURL, a.Durability
	return a.ready, nil
}

func (f upFlags) attached(s streams, r ready) error {
	if f.listen != "" || f.public != "" || f.idleExit != 0 {
		fmt.Fprintln(s.err, "webcodex: a server runs already; --listen, --public-url and --idle-exit are as it was started")
	}
	return printReady(s.out, r, f.asJSON, f.showToken)
}

// brokenLog is the end of a server whose log stopped writing: what it served goes on in the
// next life.
type brokenLog struct {
	err      error
	projects []string
}

func (b *brokenLog) Error() string { return b.err.Error() }
func (b *brokenLog) Unwrap() error { return b.err }

// restarted tells whether this process is such a next life: how often it came back, and the
// directories to serve besides its own.
func restarted() (times int, projects []string) {
	var r struct {
		Times    int
		Projects []string
	}
	if json.Unmarshal([]byte(os.Getenv(restartEnv)), &r) != nil {
		return 0, nil
	}
	return r.Times, r.Projects
}

// restart comes back through the one recovery path after a disk failed or filled: the log
// takes no more commits in a life that lost one (faults.md 2.2, 2.13).
func restart(ctx context.Context, s streams, why *brokenLog) error {
	times, _ := restarted()
	if times >= maxRestarts {
		return why
	}
	report(s.err, why)
	fmt.Fprintln(s.err, "webcodex: starting again through recovery")
	t := time.NewTimer(restartPause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return why
	case <-t.C:
	}
	self, err := os.Executable()
	if err != nil {
		return why
	}
	state, err := json.Marshal(map[string]any{"Times": times + 1, "Projects": why.projects})
	if err != nil {
		return why
	}
	if err := os.Setenv(restartEnv, string(state)); err != nil {
		return why
	}
	if err := syscall.Exec(self, os.Args, os.Environ()); err != nil {
		return errors.Join(why, err)
	}
	return why
}
