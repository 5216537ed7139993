package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	principals "webcodex/projections/access"
	"webcodex/projections/external"
	kept "webcodex/projections/history"
	registered "webcodex/projections/project"
	removed "webcodex/projections/retention"
	"webcodex/projections/session"
	"webcodex/projections/state"
	windows "webcodex/projections/window"
)

// stateFile holds the read models. It is disposable: without it the log is folded again.
const stateFile = "state.db"

// models are the folds of one life, and the file they lie in.
type models struct {
	keeper     *state.Keeper
	sessions   *session.Store
	known      *registered.Store
	tokens     *principals.Tokens
	runners    *principals.Runners // credentials of Runners in other processes
	refs       *principals.Refs    // what ~sN and ~pN stand for
	tombstones *removed.Tombstones // what is left of removed Sessions
	external   *external.Reports   // what adapters outside report about Sessions
	kept       *kept.Ledger        // what the log keeps, since when
	windows    *windows.Store      // what hosts' windows relate to, and what they wrote to each other
}

// newModels makes them; the log opens the file when it holds the directory's lock. hot is how
// many Sessions are expanded in memory.
func newModels(dir string, hot int, logger *slog.Logger) *models {
	m := &models{sessions: session.NewStore(), known: registered.NewStore(), tokens: principals.NewTokens(), runners: principals.NewRunners(), refs: principals.NewRefs(),
		tombstones: removed.New(), external: external.New(), kept: kept.New(), windows: windows.New()}
	m.keeper = state.New(state.Options{Path: filepath.Join(dir, stateFile), Fold: session.Shape(), Logger: logger,
		Models: []state.Model{m.windows, m.known, m.tokens, m.runners, m.tombstones, m.refs, m.external, m.kept, m.sessions.Model()}})
	m.sessions.SetHotTarget(hot)
	m.sessions.SetKeeper(m.keeper)
	return m
}

// serve binds the models to the open log: nothing is kept that is not durable there, and a
// Session whose rows are damaged is read again from it.
func (m *models) serve(log *eventlog.Log) {
	m.sessions.SetSource(sourceOf(log))
	m.keeper.Serve(log.SyncedSeq)
}

func sourceOf(log *eventlog.Log) session.Source {
	return func(ctx context.Context, id event.SessionID, fn func(session.Stored) error) error {
		return log.Replay(ctx, eventlog.Range{Aggregate: event.SessionAggregate(id)}, func(e eventlog.Entry) error {
			return fn(session.Stored{Seq: e.Seq, Hash: e.Hash, Commit: e.Commit})
		})
	}
}
