package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"

	"webcodex/eventlog"
	"webcodex/internal/fault"
)

// verified is `verify --json`.
type verified struct {
	OK bool `json:"ok"`
	eventlog.VerifyReport
}

func verifyCommand() command {
	return command{
		name: "verify", short: "read the whole log and compare it with what was written",
		long: `Compares every sealed block with the block ledger and follows the chain of every commit. It
changes nothing and works with and without a running server. Exit status 1 where something
is damaged; webcodex doctor names what may be done.`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			return func(ctx context.Context, s streams, _ []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				r, err := verify(ctx, dir)
				if err != nil {
					return err
				}
				return showVerified(s, r, *asJSON)
			}
		},
	}
}

// verify asks the running server or, without one, reads the log itself.
func verify(ctx context.Context, dir string) (eventlog.VerifyReport, error) {
	var r eventlog.VerifyReport
	c, err := connectControl(ctx, dir)
	if err == nil {
		defer c.close()
		return r, c.get(ctx, pathVerify, nil, &r)
	}
	if !errors.Is(err, errNoServer) {
		return r, err
	}
	a, err := openLog(ctx, dir, eventlog.Options{})
	if f := fault.As(err); err != nil && f.Kind == fault.LogDamaged {
		// The start itself found it, and opened nothing.
		blocks, ok := f.Details["blocks"].([]eventlog.BlockDamage)
		if !ok {
			return r, err
		}
		return eventlog.VerifyReport{Damaged: blocks, Records: []eventlog.Damage{}}, nil
	}
	if err != nil {
		return r, err
	}
	defer a.close()
	return a.log.Verify(ctx)
}

func (s *server) controlVerify(w http.ResponseWriter, r *http.Request) {
	report, err := s.log.Verify(r.Context())
	answer(w, report, err)
}

func showVerified(s streams, r eventlog.VerifyReport, asJSON bool) error {
	if asJSON {
		if err := printJSON(s.out, verified{r.OK(), r}); err != nil {
			return err
		}
	} else {
		p := &page{w: s.out}
		for _, d := range r.Damaged {
			p.linef("damage %s, %s", d.Reason, d)
		}
		for _, d := range r.Records {
			class, _ := eventlog.ClassOf(d.Reason)
			p.linef("damage %s, record %s at commit %d: %s", d.Reason, d.Aggregate, d.Seq, class.Means)
		}
		what := "all is as it was written"
		if !r.OK() {
			what = "`webcodex doctor` names what may be done"
		}
		p.linef("%s, %s in the ledger; the chain of %d commits: %s", plural(r.Blocks, "block"), size(uint64(max(0, r.Bytes))), r.Commits, what)
		if p.err != nil {
			return p.err
		}
	}
	if !r.OK() {
		return quietly(exitFailed)
	}
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
