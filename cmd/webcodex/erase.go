package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/retention"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

func eraseCommand() command {
	return command{
		name: "erase", args: "SESSION", min: 1, max: 1, short: "take a Session out of the data directory now",
		long: `Removes the Session and everything the log holds of it, with no server running. The log only ever loses its
beginning, so the history of all Sessions up to this one's last change leaves with it; what they are now is carried
forward and stays. A tombstone stays too: ids and fingerprints, no text. Backups are not touched.`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			yes := fs.Bool("yes", false, "do it; an active Session is closed first")
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				id, err := sessionArg(args[0])
				if err != nil {
					return err
				}
				if !*yes {
					return usagef("this cannot be undone, and history up to the Session's last change leaves too: add --yes")
				}
				done, err := erase(ctx, dir, id)
				if err != nil {
					return err
				}
				if *asJSON {
					return printJSON(s.out, done)
				}
				p := &page{w: s.out}
				p.linef("erased %s; the log begins at commit %d now and was read through", done.Session, done.FirstSeq)
				return p.err
			}
		},
	}
}

// erased is `erase --json`.
type erased struct {
	Session  event.SessionID `json:"session_id"`
	FirstSeq uint64          `json:"first_seq"` // where the log begins now
	LastSeq  uint64          `json:"last_seq"`
	Commits  int             `json:"commits"` // read through afterwards
}

// erase removes the Session, lets the log's beginning leave up to behind its last commit,
// throws the read models away, whose free pages would keep its rows, and reads the log through.
// Broken off anywhere, the same command goes on.
func erase(ctx context.Context, dir string, id event.SessionID) (erased, error) {
	o, err := openOffline(ctx, dir)
	if err != nil {
		return erased{}, err
	}
	err = o.erase(ctx, id)
	if cerr := o.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return erased{}, err
	}
	if err := forgetCopies(dir); err != nil {
		return erased{}, err
	}
	return readThrough(ctx, dir, id)
}

func (o *offlineLog) erase(ctx context.Context, id event.SessionID) error {
	agg := event.SessionAggregate(id)
	_, gone := o.models.tombstones.Find(id)
	core, err := o.models.sessions.LoadCore(id)
	if err != nil && !gone {
		return err
	}
	w := aggregate.NewWriter(o.log, time.Now)
	if err == nil && core.Lifecycle == session.Active {
		if _, err := w.Do(ctx, aggregate.Command{Aggregate: agg, Actor: event.Actor{Credential: "system"}, Reserve: true},
			func(time.Time) ([]event.Event, error) { return []event.Event{event.SessionClosed{}}, nil }); err != nil {
			return err
		}
	}
	last, err := o.log.Head(agg)
	if err != nil {
		return err
	}
	remover := retention.New(retention.Options{Writer: w, Sessions: o.models.sessions, Tombstones: o.models.tombstones,
		Limit: DefaultConfig().RetainedSessions, Logger: slog.New(slog.DiscardHandler)})
	if err := remover.Remove(ctx, id); err != nil {
		return err
	}
	blocks, err := o.log.Blocks()
	if err != nil {
		return err
	}
	// Behind its last commit, where a block begins; 0: at the end, which ends the newest block.
	cut := uint64(0)
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].First > last.Seq {
			cut = blocks[i].First
		}
	}
	if err := o.pruner.Cut(ctx, cut); err != nil {
		return err
	}
	if first := o.log.Status().FirstSeq; first <= last.Seq {
		return fault.New(fault.Conflict, "a record that cannot be carried forward holds the log's beginning; the Session is removed, but its bytes are still there").
			WithNext("run webcodex doctor")
	}
	return nil
}

// forgetCopies takes away what may hold rows or commits beside the log itself. All of it is
// made again from there.
func forgetCopies(dir string) error {
	for _, name := range []string{stateFile, stateFile + "-wal", stateFile + "-shm", stateFile + ".damaged", stateFile + "-spoiled", "log-tail-copy", "log-tail-copy.pending"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failf(exitFailed, "%s in the data directory cannot be removed: %v", name, short(err))
		}
	}
	return nil
}

// readThrough opens the log afresh and checks every commit.
func readThrough(ctx context.Context, dir string, id event.SessionID) (erased, error) {
	a, err := openLog(ctx, dir, eventlog.Options{})
	if err != nil {
		return erased{}, err
	}
	defer a.close()
	st := a.log.Status()
	out := erased{Session: id, FirstSeq: st.FirstSeq, LastSeq: st.Seq}
	err = a.log.Replay(ctx, eventlog.Range{}, func(e eventlog.Entry) error {
		if e.Commit.Aggregate == event.SessionAggregate(id) {
			return fmt.Errorf("commit %d of the erased Session is still there", e.Seq)
		}
		out.Commits++
		return nil
	})
	return out, err
}
