package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"webcodex/eventlog"
)

// serveCommand is `up` without a Project and without a Runner: these come over the link.
func serveCommand() command {
	return command{
		name: "serve", short: "run the server alone; Runners connect to it from elsewhere",
		long: `Starts the server with the log in the data directory, on loopback for hosts, without a Project
and without a Runner of its own. Runners on other machines or under other accounts connect where
--runner-listen (TLS) or --runner-ws-listen (behind a proxy with HTTPS) say; each is let in with a
code of its own:

  webcodex serve --runner-listen 0.0.0.0:7422
  webcodex token create --kind runner --name "build box"      (in another terminal)
  webcodex runner --enroll CODE DIR…                          (on the build box)

docs/runners.md tells more. All else is as with webcodex up.`,
		setup: func(fs *flag.FlagSet) action {
			var f upFlags
			load := configFlags(fs)
			data := dataFlag(fs)
			asJSON := jsonFlag(fs)
			fs.BoolVar(&f.showToken, "show-token", false, "print the token although this is no terminal")
			return func(ctx context.Context, s streams, _ []string) (err error) {
				f.data, f.asJSON = *data, *asJSON
				if f.cfg, err = load(); err != nil {
					return err
				}
				return serveAlone(ctx, s, f)
			}
		},
	}
}

func serveAlone(ctx context.Context, s streams, f upFlags) error {
	dir, err := dataDir(f.data)
	if err != nil {
		return err
	}
	if f.cfg.Runners.Listen == "" && f.cfg.Runners.WSListen == "" {
		fmt.Fprintln(s.err, "webcodex: no Runner can connect: name a place with --runner-listen HOST:PORT or --runner-ws-listen HOST:PORT")
	}
	return comeBack(ctx, s, dir, func() error {
		if err := makeDataDir(dir, ""); err != nil {
			return err
		}
		until := time.Now().Add(attachWait)
		for {
			switch err := findServer(ctx, dir); {
			case err == nil:
				return failf(exitFailed, "a server runs on this data directory already: end it first, or name another one with --data")
			case !errors.Is(err, errNoServer):
				return err
			}
			if err := serve(ctx, s, f, dir, ""); !errors.Is(err, eventlog.ErrLocked) {
				return err
			}
			if time.Now().After(until) {
				return failf(exitNoServer, "another process holds the data directory and does not answer: wait for it, end it, or name another directory with --data")
			}
			if !sleep(ctx, attachEvery) {
				return ctx.Err()
			}
		}
	})
}
