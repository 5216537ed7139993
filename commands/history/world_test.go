package history_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/commands/aggregate"
	"webcodex/commands/history"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/access"
	ledger "webcodex/projections/history"
	"webcodex/projections/project"
	"webcodex/projections/retention"
	"webcodex/projections/session"
	"webcodex/projections/state"
)

// Budgets by which JetStream cuts its blocks at 32 KB and at 4 MiB.
const (
	tiny  = 125_000
	small = 31 << 20
)

var system = event.Actor{Authority: event.Hash([]byte("a")), Principal: event.Hash([]byte("p")), Credential: "owner"}

// world is one life of a log with its read models, and an oracle that has seen every commit
// since the first.
type world struct {
	dir    string
	budget int64
	change func(*history.Options)
	faults *eventlog.Faults
	now    func() time.Time
	oracle *session.Store

	log      *eventlog.Log
	keeper   *state.Keeper
	sessions *session.Store
	known    *project.Store
	tokens   *access.Tokens
	refs     *access.Refs
	tombs    *retention.Tombstones
	ledger   *ledger.Ledger
	writer   *aggregate.Writer
	pruner   *history.Pruner
}

func newWorld(t testing.TB, budget int64, change ...func(*world)) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), budget: budget, oracle: session.NewStore(), now: time.Now}
	for _, c := range change {
		c(w)
	}
	// The smallest budget is below what a person may give.
	format := fmt.Sprintf(`{"format":1,"log_max_bytes":%d}`, budget)
	if err := os.WriteFile(filepath.Join(w.dir, "format"), []byte(format), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.close() })
	return w
}

func (w *world) open() error {
	w.sessions, w.known, w.tokens, w.refs, w.tombs, w.ledger = session.NewStore(), project.NewStore(), access.NewTokens(), access.NewRefs(),
		retention.New(), ledger.New()
	w.keeper = state.New(state.Options{Path: filepath.Join(w.dir, "state.db"), Fold: "1",
		Models: []state.Model{w.known, w.tokens, w.tombs, w.refs, w.ledger, w.sessions.Model()}})
	var err error
	w.log, err = eventlog.Open(context.Background(), eventlog.Options{Dir: w.dir, Durability: eventlog.Process, Server: event.NewInstanceID(),
		Now: w.now, Base: w.keeper, Folds: []eventlog.Fold{w.oracle}, Faults: w.faults})
	if err != nil {
		return err
	}
	w.keeper.Serve(w.log.SyncedSeq)
	w.writer = aggregate.NewWriter(w.log, w.now)
	tombs := func(_ context.Context, a event.Aggregate) (int, []byte, bool, error) { return w.tombs.Carry(a) }
	o := history.Options{Log: w.log, Living: w.keeper, Ledger: w.ledger, Writer: w.writer, Now: w.now, Pages: w.refs.Pages,
		Beyond:  w.sessions.Overflowed,
		Carrier: history.NewCarrier(w.writer, w.sessions.Carry, w.known.Carry, w.tokens.Carry, w.refs.Carry, tombs)}
	if w.change != nil {
		w.change(&o)
	}
	w.pruner = history.NewPruner(o)
	return nil
}

func (w *world) close() error {
	if w.log == nil {
		return nil
	}
	l := w.log
	w.log = nil
	return l.Close()
}

// reopen begins the next life, with the read models or without.
func (w *world) reopen(t rapid.TB, forget bool) {
	t.Helper()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if forget {
		w.forget(t)
	}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
}

func (w *world) forget(t rapid.TB) {
	t.Helper()
	for _, f := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(w.dir, "state.db"+f)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// commit writes events of a Session, of a removed one too.
func (w *world) commit(t rapid.TB, a event.Aggregate, events ...event.Event) eventlog.Receipt {
	t.Helper()
	r, err := w.try(a, events...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) try(a event.Aggregate, events ...event.Event) (eventlog.Receipt, error) {
	return w.writer.Do(context.Background(), aggregate.Command{Aggregate: a, Actor: system, Reserve: true},
		func(time.Time) ([]event.Event, error) { return events, nil })
}

func created(title string) event.SessionCreated {
	return event.SessionCreated{Nonce: event.NewNonce(), Authority: system.Authority, Principal: system.Principal,
		Project: event.ProjectRef{Client: "box", Project: "demo-00000000"}, Title: title, Mode: event.ModeNormal}
}

// begin makes a Session.
func (w *world) begin(t rapid.TB, title string) event.SessionID {
	t.Helper()
	id := event.NewSessionID()
	w.commit(t, event.SessionAggregate(id), created(title))
	return id
}

// call is one recorded call of the Session.
func (w *world) call(t rapid.TB, id event.SessionID, paths ...string) {
	t.Helper()
	c := event.NewCallID()
	w.commit(t, event.SessionAggregate(id), event.ToolCallStarted{Call: c, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp",
		Input: event.Input{Paths: paths, PathCount: len(paths)}})
	w.commit(t, event.SessionAggregate(id), event.ToolCallFinished{Call: c, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp",
		Status: event.StatusSucceeded, DurationMS: 3, Observed: paths, Expectation: "none"})
}

// read is one recorded read: its start and its finish are one commit.
func (w *world) read(t rapid.TB, id event.SessionID, paths ...string) {
	t.Helper()
	c := event.NewCallID()
	w.commit(t, event.SessionAggregate(id),
		event.ToolCallStarted{Call: c, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp", Input: event.Input{Paths: paths}},
		event.ToolCallFinished{Call: c, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp", Status: event.StatusSucceeded,
			DurationMS: 3, Observed: paths, Expectation: "none"})
}

// remove takes a Closed Session away.
func (w *world) remove(t rapid.TB, id event.SessionID) {
	t.Helper()
	v, err := w.sessions.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	last := w.tombs.Standing(0).Newest
	w.commit(t, event.RetentionAggregate(), event.SessionRemoved{Session: id, Authority: v.Core.Authority, Principal: v.Core.Principal,
		Incarnation: event.Incarnation(id, v.Core.Nonce), Ordinal: last + 1})
}

// same compares what the read models say of every Session with the fold from the first event.
func (w *world) same(t rapid.TB, ids []event.SessionID) {
	t.Helper()
	for _, id := range ids {
		want, there := w.oracle.View(id)
		got, err := w.sessions.Load(id)
		if there != (err == nil) {
			t.Fatalf("%s: there %v, %v", id, there, err)
		}
		if there && !bytes.Equal(session.EncodeView(want), session.EncodeView(got)) {
			t.Fatalf("%s differs from the fold from its first event:\n%s\n%s", id, session.EncodeView(want), session.EncodeView(got))
		}
	}
}

// first is where the log begins.
func (w *world) first() uint64 { return w.log.Status().FirstSeq }

// whole reads the log through and checks every chain.
func (w *world) whole(t rapid.TB) {
	t.Helper()
	n := uint64(0)
	err := w.log.Replay(context.Background(), eventlog.Range{}, func(e eventlog.Entry) error {
		if n == 0 && e.Seq != w.first() {
			return fmt.Errorf("begins at %d, not %d", e.Seq, w.first())
		}
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// holds reports whether any file of the log holds the marker.
func (w *world) holds(t rapid.TB, marker string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(w.dir, "log"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		found = found || bytes.Contains(b, []byte(marker))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
