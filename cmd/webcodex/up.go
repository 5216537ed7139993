package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
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
	// cfg is what a server is started with.
	cfg effective
	// faults lets a test stand at the committer's points; nil in the program.
	faults *eventlog.Faults
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
			load := configFlags(fs)
			data := dataFlag(fs)
			asJSON := jsonFlag(fs)
			fs.BoolVar(&f.showToken, "show-token", false, "print the token although this is no terminal")
			fs.DurationVar(&f.idleExit, "idle-exit", 0, "end after this long without a caller, for example `30m`; 0: never")
			return func(ctx context.Context, s streams, args []string) (err error) {
				f.data, f.asJSON = *data, *asJSON
				if f.cfg, err = load(); err != nil {
					return err
				}
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
	if f.idleExit < 0 {
		return usagef("--idle-exit is a positive duration, for example 30m")
	}
	return nil
}

// reason is why the server has this durability.
func (f upFlags) reason() string { return f.cfg.origin("durability") }

// promise is the durability that was asked for, wherever; empty: any will do.
func (f upFlags) promise() eventlog.Durability {
	if f.cfg.from["durability"] == "" {
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
	flagged := f.idleExit != 0
	for key, from := range f.cfg.from {
		flagged = flagged || from == fromFlag && key != "durability"
	}
	if flagged {
		fmt.Fprintln(s.err, "webcodex: a server runs already; all but the directory is as it was started")
	}
	return printReady(s.out, r, f.asJSON, f.showToken)
}
