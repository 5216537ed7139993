package session

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/bench"
	"webcodex/projections/state"
)

// filled is a Store over a file whose rows were made by feeding commits through the Keeper,
// as a start does; the log itself is not what is measured.
type filled struct {
	store  *Store
	keeper *state.Keeper
	seq    uint64
}

func newFilled(t testing.TB) *filled {
	f := &filled{store: NewStore()}
	var err error
	f.keeper, err = state.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db"), Fold: "1",
		Models: []state.Model{f.store.Model()}})
	if err != nil {
		t.Fatal(err)
	}
	f.store.SetKeeper(f.keeper)
	t.Cleanup(func() { _ = f.keeper.Close() })
	return f
}

func (f *filled) feed(c event.Commit) {
	f.seq++
	a := eventlog.Applied{Seq: f.seq, Hash: fmt.Sprintf("%064x", f.seq), Commit: c}
	if c.Version == 1 {
		a.First, a.Root = true, f.seq
	}
	f.keeper.Apply(a)
}

func (f *filled) flush(t testing.TB) {
	t.Helper()
	if err := f.keeper.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

var benchTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func sessionNo(n int) event.SessionID { return event.SessionID(fmt.Sprintf("wc_sess_%032x", n)) }

// callCommit is a recorded call of a Session in one commit, as a read leaves it; version 1
// creates the Session.
func callCommit(id event.SessionID, version uint64) event.Commit {
	c := event.Commit{Format: event.Format, ID: "wc_cmd_00000000000000000000000000000001", Aggregate: event.SessionAggregate(id),
		Version: version, At: benchTime.Add(time.Duration(version) * time.Second), Server: testServer,
		Actor: event.Actor{Authority: testAuthority, Principal: testAuthority, Credential: "owner"}}
	if version == 1 {
		c.Events = []event.Event{created("measured"), event.InstructionAccepted{Text: "measure", Continuation: "created",
			Mode: event.ModeNormal, Transport: "mcp"}}
		return c
	}
	call := event.CallID(fmt.Sprintf("wc_call_%032x", version))
	c.Invocation = event.InvocationID(fmt.Sprintf("wc_inv_%032x", version))
	// One Session reads the same files again and again; a path is not new because the Session is old.
	path := fmt.Sprintf("internal/package_%03d/file_%05d.go", version%100, version%1000)
	c.Events = []event.Event{
		event.ToolCallStarted{Call: call, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp",
			Input: event.Input{Paths: []string{path}, PathCount: 1}, At: event.FormatTime(c.At.Add(-12 * time.Millisecond))},
		event.ToolCallFinished{Call: call, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp", Status: event.StatusSucceeded,
			DurationMS: 12, Observed: []string{path}, Effect: event.Effect{State: event.Completed}, Expectation: "none"},
	}
	return c
}

// full feeds a Session whose tail is full.
func (f *filled) full(id event.SessionID) {
	for v := range uint64(MaxTail/2 + 10) {
		f.feed(callCommit(id, v+1))
	}
}

// chill makes everything cold.
func (f *filled) chill(t testing.TB) {
	t.Helper()
	f.store.SetHotTarget(0)
	f.full(sessionNo(1 << 40)) // the one that may stay
	f.flush(t)
}

const rounds = 5

func (f *filled) load(t testing.TB, ids []event.SessionID) time.Duration {
	began := time.Now()
	for _, id := range ids {
		if v, err := f.store.Load(id); err != nil || v.Tail.Len() != MaxTail {
			t.Fatal(v.Tail.Len(), err)
		}
	}
	return time.Since(began)
}

// selectRows is the SQL of a cold read alone: the same statements, every column scanned.
func (f *filled) selectRows(t testing.TB, ids []event.SessionID) time.Duration {
	began := time.Now()
	for _, id := range ids {
		if err := selectRows(f.store.file, id); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}

func selectRows(file *tables, id event.SessionID) error {
	ctx := context.Background()
	tx, err := file.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var r stored
	var hash int64
	if err := tx.StmtContext(ctx, file.row).QueryRowContext(ctx, string(id)).
		Scan(&r.num, &r.id, &r.authority, &r.client, &r.project, &r.life, &r.updated, &r.busy, &r.core, &hash); err != nil {
		return err
	}
	rows, err := tx.StmtContext(ctx, file.tail).QueryContext(ctx, r.num)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text, &hash); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A cold Session costs what its rows cost to read, however long the log is.
func TestRatioColdOpen(t *testing.T) {
	bench.Skip(t)
	small, big := newFilled(t), newFilled(t)
	var ids []event.SessionID
	for n := range rounds {
		ids = append(ids, sessionNo(n))
		small.full(ids[n])
	}
	for n := range 100_000 { // 1,000,000 commits, and then those that are measured
		for v := range uint64(10) {
			big.feed(callCommit(sessionNo(1000+n), v+1))
		}
		if n%20_000 == 0 && n/20_000 < rounds {
			big.full(ids[n/20_000])
		}
	}
	small.chill(t)
	big.chill(t)
	bench.Run(t, bench.Comparison{Name: "5 opening a cold Session with a full tail vs the SQL alone", Bar: 1.5, AtMost: true,
		Ours:      func() time.Duration { return big.load(t, ids) },
		Yardstick: func() time.Duration { return big.selectRows(t, ids) }})
	bench.Run(t, bench.Comparison{Name: "5 the same with 1,000,000 commits in the log vs with 5,000", Bar: 1.2, AtMost: true,
		Ours:      func() time.Duration { return big.load(t, ids) },
		Yardstick: func() time.Duration { return small.load(t, ids) }})
	bench.Run(t, bench.Comparison{Name: "5 a handoff of a cold Session with a full tail vs the SQL alone", Bar: 3, AtMost: true,
		Ours: func() time.Duration {
			began := time.Now()
			for _, id := range ids {
				v, err := big.store.Load(id)
				if err != nil {
					t.Fatal(err)
				}
				NewHandoff(v, all(), false, nil)
			}
			return time.Since(began)
		},
		Yardstick: func() time.Duration { return big.selectRows(t, ids) }})
}

// calls feeds n recorded calls of a Session from a version on, one batch each eight, and gives
// the time of feeding and writing.
func (f *filled) calls(t testing.TB, id event.SessionID, from uint64, n int) time.Duration {
	began := time.Now()
	for i := range n {
		if _, err := f.store.Target(id); err != nil {
			t.Fatal(err)
		}
		f.feed(callCommit(id, from+uint64(i)))
		if i%8 == 7 {
			f.flush(t)
		}
	}
	return time.Since(began)
}

// A recorded call costs the read models the same at any age of its Session and at any number
// of others.
func TestRatioRecordedCall(t *testing.T) {
	bench.Skip(t)
	const batch = 64
	alone, among := newFilled(t), newFilled(t)
	for n := range 100_000 {
		among.feed(callCommit(sessionNo(1000+n), 1))
	}
	among.flush(t)
	next := 0
	fresh := func(f *filled, age uint64) func() time.Duration {
		return func() time.Duration {
			next++
			id := sessionNo(1<<30 + next)
			for v := range age {
				f.feed(callCommit(id, v+1))
				if v%512 == 511 {
					f.flush(t)
				}
			}
			f.flush(t)
			return f.calls(t, id, age+1, batch)
		}
	}
	// Those of some age are made once and grow: the rows just made would be measured too.
	aged := func(id event.SessionID, age uint64) func() time.Duration {
		for v := range age {
			alone.feed(callCommit(id, v+1))
		}
		alone.flush(t)
		return func() time.Duration {
			took := alone.calls(t, id, age+1, batch)
			age += batch
			return took
		}
	}
	middle, old := aged(sessionNo(1<<28), 2000), aged(sessionNo(1<<29), 20_000)
	bench.Run(t, bench.Comparison{Name: "6 recorded call 2,000 of a Session vs call 10, read models", Bar: 1.2, AtMost: true,
		Ours: middle, Yardstick: fresh(alone, 10)})
	bench.Run(t, bench.Comparison{Name: "6 recorded call 20,000 of a Session vs call 2,000, read models", Bar: 1.2, AtMost: true,
		Ours: old, Yardstick: middle})
	bench.Run(t, bench.Comparison{Name: "6 recorded call with 100,000 Sessions vs with 1, read models", Bar: 1.2, AtMost: true,
		Ours: fresh(among, 10), Yardstick: fresh(alone, 10)})
}
