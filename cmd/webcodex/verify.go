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
changes nothing and works with and without a running server; without one it reads the files
alone and opens no log. Exit status 1 where something
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
	return checkOffline(ctx, dir)
}

// checkOffline reads the files of a log that nobody has open.
func checkOffline(ctx context.Context, dir string) (eventlog.VerifyReport, error) {
	if err := mayOpen(dir); err != nil {
		return eventlog.VerifyReport{}, err
	}
	r, err := eventlog.VerifyFiles(ctx, eventlog.Options{Dir: dir, Witness: witness(ctx, dir)})
	switch {
	case errors.Is(err, eventlog.ErrLocked):
		return r, held(dir)
	case err == nil:
		return r, nil
	}
	if class, known := eventlog.ClassOf(fault.As(err).Reason); known && fault.As(err).Kind == fault.LogDamaged {
		// Of the whole log: no block of it was read.
		r.Damaged = append(r.Damaged, eventlog.BlockDamage{Reason: class.Reason})
		return r, nil
	}
	return r, err
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
		p.linef("%s", checked(r))
		if r.EndUnknown {
			p.linef("%s", endUnknown)
		}
		if p.err != nil {
			return p.err
		}
	}
	if !r.OK() {
		return quietly(exitFailed)
	}
	return nil
}

// checked says what was compared, and what was not because of damage.
func checked(r eventlog.VerifyReport) string {
	blocks := fmt.Sprintf("%s, %s in the ledger", plural(r.Blocks, "block"), size(uint64(max(0, r.Bytes))))
	const next = "`webcodex doctor` names what may be done"
	switch {
	case r.OK():
		return fmt.Sprintf("%s; the chain of %d commits: all is as it was written", blocks, r.Commits)
	case r.Commits == 0 && r.Blocks == 0:
		return "no commit's chain was followed, because of this damage; " + next
	case r.Commits == 0:
		return fmt.Sprintf("%s, were compared; no commit's chain was followed, because of this damage; %s", blocks, next)
	case len(r.Damaged) > 0:
		return fmt.Sprintf("%s; the chain was followed for %d commits, up to the damage; %s", blocks, r.Commits, next)
	}
	return fmt.Sprintf("%s; the chain of %d commits was followed; %s", blocks, r.Commits, next)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// endUnknown is said where the last stop was not clean and state.db, which proves how far the
// log went, cannot be read.
const endUnknown = stateFile + " could not tell how far the log went: whether commits are missing from its end is known up to the last checkpoint alone"
