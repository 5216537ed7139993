package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/retention"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

func eraseCommand() command {
	return command{
		name: "erase", args: "SESSION", min: 1, max: 1, short: "take a Session out of the data directory now",
		long: `Removes the Session and everything the log holds of it, with no server running. The log only ever loses its
beginning, so the history of all Sessions up to this one's last change leaves with it; what they are now is carried
forward and stays. A tombstone stays too: ids and fingerprints, no text. Calls and Jobs that a dead
server left open get an unknown outcome. Backups are not touched.`,
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
	done, err := readThrough(ctx, dir, id)
	if err == nil {
		err = os.Remove(filepath.Join(dir, eraseMark))
	}
	return done, err
}

func (o *offlineLog) erase(ctx context.Context, id event.SessionID) error {
	_, err := o.models.sessions.LoadCore(id)
	if err != nil && fault.KindOf(err) != fault.UnknownSessionID {
		return err
	}
	if err == nil {
		if err := o.remove(ctx, id); err != nil {
			return err
		}
	}
	// The read models know no Session whose tombstone has aged out. The log does.
	last, lerr := o.lastOf(ctx, id)
	if lerr != nil {
		return lerr
	}
	if _, gone := o.models.tombstones.Find(id); err != nil && !gone && last == 0 && eraseBegun(o.dir) != id {
		return fault.New(fault.UnknownSessionID, "no Session has this id, and the log holds nothing of it").WithNext("`webcodex sessions` lists them")
	}
	if err := beginErase(o.dir, id); err != nil {
		return err
	}
	return o.cutBehind(ctx, last)
}

// remove ends what a dead server left open of the Session, closes it and removes it.
func (o *offlineLog) remove(ctx context.Context, id event.SessionID) error {
	w := aggregate.NewWriter(o.log, time.Now)
	cmd := aggregate.Command{Aggregate: event.SessionAggregate(id), Actor: event.Actor{Credential: "system"}, Invocation: event.NewInvocationID(), Reserve: true}
	for {
		r, err := w.Do(ctx, cmd, func(time.Time) ([]event.Event, error) {
			core, err := o.models.sessions.LoadCore(id)
			return retention.Settle(core), err
		})
		if err != nil {
			return err
		}
		if r.Seq == 0 {
			break
		}
	}
	remover := retention.New(retention.Options{Writer: w, Sessions: o.models.sessions, Tombstones: o.models.tombstones})
	return remover.Remove(ctx, id)
}

// ofSession are the records that hold a Session and what was reported about it.
func ofSession(id event.SessionID) []event.Aggregate {
	return []event.Aggregate{event.SessionAggregate(id), event.ExternalAggregate(id)}
}

// lastOf is the Session's last commit in the log; 0: it has none there.
func (o *offlineLog) lastOf(ctx context.Context, id event.SessionID) (last uint64, err error) {
	for _, a := range ofSession(id) {
		err := o.log.Replay(ctx, eventlog.Range{Aggregate: a}, func(e eventlog.Entry) error {
			last = max(last, e.Seq)
			return nil
		})
		if err != nil {
			return last, err
		}
	}
	return last, nil
}

// cutBehind lets the log's beginning leave up to behind a commit; 0: what it was has left already.
func (o *offlineLog) cutBehind(ctx context.Context, last uint64) error {
	if last == 0 {
		return nil
	}
	blocks, err := o.log.Blocks()
	if err != nil {
		return err
	}
	// Where a block begins; 0: at the end, which ends the newest block.
	cut := uint64(0)
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].First > last {
			cut = blocks[i].First
		}
	}
	if err := o.pruner.Cut(ctx, cut); err != nil {
		return err
	}
	if first := o.log.Status().FirstSeq; first <= last {
		return fault.New(fault.Conflict, "a record that cannot be carried forward holds the log's beginning; the Session is removed, but its bytes are still there").
			WithNext("run webcodex doctor")
	}
	return nil
}

// eraseMark holds the id of the Session that is being erased: the log may have forgotten it, and
// the read models' free pages not, when the same command goes on.
const eraseMark = "erasing"

func beginErase(dir string, id event.SessionID) error {
	if err := writeDurably(filepath.Join(dir, eraseMark), []byte(id)); err != nil {
		return failf(exitFailed, "%s in the data directory cannot be written: %v", eraseMark, short(err))
	}
	return nil
}

// eraseBegun is the Session whose erasing has not come to its end; empty: none.
func eraseBegun(dir string) event.SessionID {
	body, err := os.ReadFile(filepath.Join(dir, eraseMark))
	if id := event.SessionID(body); err == nil && id.Valid() {
		return id
	}
	return ""
}

// forgetCopies takes away what may hold rows or commits beside the log itself. All of it is
// made again from there.
func forgetCopies(dir string) error {
	for _, name := range []string{stateFile, stateFile + "-wal", stateFile + "-shm", stateFile + ".damaged", stateFile + ".damaged-wal", stateFile + "-spoiled", "log-tail-copy", "log-tail-copy.pending"} {
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
		if slices.Contains(ofSession(id), e.Commit.Aggregate) {
			return fmt.Errorf("commit %d of the erased Session is still there", e.Seq)
		}
		out.Commits++
		return nil
	})
	return out, err
}
