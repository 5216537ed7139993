package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"time"

	"webcodex/eventlog"
)

// attachWait bounds how long `up` waits for the server that holds the lock to answer: it may
// be starting, or ending.
const (
	attachWait  = 20 * time.Second
	attachEvery = 100 * time.Millisecond
)

// upFlags are the flags of `up`.
type upFlags struct {
	data              string
	asJSON, showToken bool
	idleExit          time.Duration
	// promised: --durability was given, so a running server has to promise the same.
	promised bool
	// cfg is what a server is started with.
	cfg Config
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
			f := upFlags{cfg: DefaultConfig()}
			data := dataFlag(fs)
			asJSON := jsonFlag(fs)
			fs.StringVar(&f.cfg.Listen, "listen", "", "`HOST:PORT` on loopback; port 0 picks a free one")
			fs.StringVar((*string)(&f.cfg.Durability), "durability", string(f.cfg.Durability), "what an answer promises: `always` and group survive a power cut, process survives kill -9")
			fs.StringVar(&f.cfg.PublicURL, "public-url", "", "`URL` under which a tunnel reaches this server")
			fs.BoolVar(&f.showToken, "show-token", false, "print the token although this is no terminal")
			fs.DurationVar(&f.idleExit, "idle-exit", 0, "end after this long without a caller, for example `30m`; 0: never")
			return func(ctx context.Context, s streams, args []string) error {
				f.data, f.asJSON, f.promised = *data, *asJSON, given(fs, "durability")
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
	return comeBack(ctx, s, dir, func() error {
		if err := makeDataDir(dir, root); err != nil {
			return err
		}
		return f.attachOrServe(ctx, s, dir, root)
	})
}

// attachOrServe joins the running server or becomes it. While another process holds the lock
// without answering it is starting, and then answers soon, or ending, and then it is our turn.
func (f upFlags) attachOrServe(ctx context.Context, s streams, dir, root string) error {
	until := time.Now().Add(attachWait)
	for {
		r, err := attach(ctx, dir, root, f.promise())
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
		if !sleep(ctx, attachEvery) {
			return ctx.Err()
		}
	}
}

func (f upFlags) check() error {
	if !f.cfg.Durability.Valid() {
		return usagef("--durability is always, group or process")
	}
	if f.cfg.Listen != "" {
		if _, err := loopback(f.cfg.Listen); err != nil {
			return err
		}
	}
	if f.idleExit < 0 {
		return usagef("--idle-exit is a positive duration, for example 30m")
	}
	if f.cfg.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(f.cfg.PublicURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.Trim(u.Path, "/") != "" {
		return usagef("--public-url is the address hosts on the internet use, https://NAME without a path")
	}
	return nil
}

// reason is why the server has this durability.
func (f upFlags) reason() string {
	if f.promised {
		return "--durability"
	}
	return "default"
}

// promise is the durability that was asked for; empty: any will do.
func (f upFlags) promise() eventlog.Durability {
	if !f.promised {
		return ""
	}
	return f.cfg.Durability
}

// attach adds the directory to the running server; errNoServer where none runs. A promise
// that this server does not make is refused and adds nothing; empty, any will do.
func attach(ctx context.Context, dir, root string, promise eventlog.Durability) (ready, error) {
	c, err := connectControl(ctx, dir)
	if err != nil {
		return ready{}, err
	}
	defer c.close()
	var a added
	if err := c.post(ctx, pathProjects, addProject{Path: root, Durability: promise}, &a); err != nil {
		return ready{}, err
	}
	a.tokenFile, a.public, a.durable = tokenPath(dir), a.PublicURL, a.Durability
	return a.ready, nil
}

func (f upFlags) attached(s streams, r ready) error {
	if f.cfg.Listen != "" || f.cfg.PublicURL != "" || f.idleExit != 0 {
		fmt.Fprintln(s.err, "webcodex: a server runs already; --listen, --public-url and --idle-exit are as it was started")
	}
	return printReady(s.out, r, f.asJSON, f.showToken)
}
