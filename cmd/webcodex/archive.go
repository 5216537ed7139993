package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/mcp"
	"webcodex/projections/external"
	kept "webcodex/projections/history"
	"webcodex/projections/session"
	"webcodex/projections/state"
)

// archive is the log of a data directory that no server has open: our own commands read it
// under the lock and write nothing (shapes.md 5).
type archive struct {
	log   *eventlog.Log
	store *session.Store // nil where only the log is read
	// reports are of adapters outside; nil where only the log is read.
	reports *external.Reports
	// told is what the log says of itself: its times, and whether the clock can be trusted. With a
	// base it holds what came after its checkpoint.
	told *kept.Ledger
}

// openArchive opens the log for reading, with the read models that state.db keeps of it.
func openArchive(ctx context.Context, dir string) (*archive, error) {
	m := newModels(dir, 0, slog.New(slog.DiscardHandler))
	a, err := openLog(ctx, dir, eventlog.Options{Base: m.keeper})
	if err != nil {
		return nil, err
	}
	m.sessions.SetSource(sourceOf(a.log))
	a.store, a.reports = m.sessions, m.external
	return a, nil
}

// openLog opens the log alone: every commit is read, and no file but the log's is looked at.
func openLog(ctx context.Context, dir string, o eventlog.Options) (*archive, error) {
	if err := mayOpen(dir); err != nil {
		return nil, err
	}
	a := &archive{told: kept.New()}
	o.Dir, o.ReadOnly, o.Folds, o.Witness = dir, true, []eventlog.Fold{a.told}, witness(ctx, dir)
	var err error
	a.log, err = eventlog.Open(ctx, o)
	if errors.Is(err, eventlog.ErrLocked) {
		return nil, held(dir)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// held says that another process has the directory, and what that may be.
func held(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, socketName)); errors.Is(err, fs.ErrNotExist) {
		return failf(exitNoServer, "another process holds the data directory and has no control socket there: it is starting or ending, "+
			"or its socket was removed; try again in a moment, else end that process and start it again")
	}
	return failf(exitNoServer, "another process holds the data directory: try again in a moment, or end the server first")
}

// mayOpen refuses a directory that is not ours alone, or has no log.
func mayOpen(dir string) error {
	if err := ownDataDir(dir); err != nil {
		return err
	}
	if !hasLog(dir) {
		return failf(exitNoServer, "the data directory has no log yet: start a server with `webcodex up`")
	}
	return nil
}

// hasLog tells that a log is in the directory, or was: each of the files proves it.
func hasLog(dir string) bool {
	for _, name := range []string{"format", "checkpoint.json", "ledger", stateFile, "log"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// witness lets the log ask state.db how far it went, which is never ahead of the disk.
func witness(ctx context.Context, dir string) func() (eventlog.BaseCheckpoint, error) {
	return func() (eventlog.BaseCheckpoint, error) {
		at, err := state.Peek(ctx, filepath.Join(dir, stateFile))
		if at.Seq == 0 && mcp.CheckOwner(dir) == nil {
			at.Seq = 1 // the owner is made after the log's first commit
		}
		return at, err
	}
}

func (a *archive) close() { _ = a.log.Close() }

// steps folds one Session afresh from the log, up to the point, commit by commit.
func steps(ctx context.Context, log *eventlog.Log, id event.SessionID, p session.Point, fn func(session.Step) error) error {
	var from event.Commit
	return commits(ctx, log, id, p, &from, func(s session.Stored) error { return fn(session.NewStep(s)) })
}

// asOf is the Session as it was at the point, folded afresh from the log.
func asOf(ctx context.Context, log *eventlog.Log, id event.SessionID, p session.Point) (session.Summary, error) {
	v, err := viewAsOf(ctx, log, id, p)
	if err != nil {
		return session.Summary{}, err
	}
	return session.NewSummary(v, nil), nil
}

// viewAsOf is the Session as it was, folded afresh.
func viewAsOf(ctx context.Context, log *eventlog.Log, id event.SessionID, p session.Point) (session.View, error) {
	var v session.View
	var from event.Commit
	err := commits(ctx, log, id, p, &from, func(s session.Stored) error {
		v = v.Apply(s.Seq, s.Hash, s.Commit)
		return nil
	})
	if err != nil {
		return session.View{}, err
	}
	if last := v.Core.Version; last > 0 && p.Version > last {
		return session.View{}, fault.New(fault.InvalidArguments, "the Session has no version %d, its last one is %d", p.Version, last).WithField("at")
	}
	if !v.Core.Exists() && from.Version > 1 {
		return session.View{}, fault.New(fault.InvalidArguments, "what the Session was then has left the log, which holds it from version %d of %s on",
			from.Version, event.FormatTime(from.At)).WithField("at").WithNext("`webcodex history` says what is kept and why")
	}
	if !v.Core.Exists() {
		return session.View{}, fault.New(fault.InvalidArguments, "the Session did not exist yet at that time")
	}
	return v, nil
}

// errBeyond ends a replay at its point.
var errBeyond = errors.New("beyond the point")

// commits gives the Session's commits up to the point; from is the first one that the log holds.
func commits(ctx context.Context, log *eventlog.Log, id event.SessionID, p session.Point, from *event.Commit, fn func(session.Stored) error) error {
	err := log.Replay(ctx, eventlog.Range{Aggregate: event.SessionAggregate(id)}, func(e eventlog.Entry) error {
		if from.Version == 0 {
			*from = e.Commit
		}
		if !p.Includes(e.Commit) {
			return errBeyond
		}
		return fn(session.Stored{Seq: e.Seq, Hash: e.Hash, Commit: e.Commit})
	})
	switch {
	case errors.Is(err, errBeyond):
		return nil
	case err != nil:
		return err
	case from.Version == 0:
		return fault.New(fault.UnknownSessionID, "no Session has this id").WithNext("`webcodex sessions` lists them")
	}
	return nil
}
