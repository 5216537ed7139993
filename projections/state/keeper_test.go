package state

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// sums is a model that adds up versions per aggregate.
type sums struct {
	mu    sync.Mutex
	db    *sql.DB
	dirty map[string]uint64
	// writing is what a batch holds; what it did not write is in the next one.
	writing map[string]uint64
	fail    error
}

func (m *sums) Apply(_ uint64, _ string, c event.Commit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirty == nil {
		m.dirty = map[string]uint64{}
	}
	m.dirty[c.Aggregate.String()] += c.Version
}

func (m *sums) Schema() []string {
	return []string{`CREATE TABLE sums (name TEXT PRIMARY KEY, total INTEGER NOT NULL)`}
}

func (m *sums) Load(_ context.Context, db *sql.DB) error { m.db = db; return nil }
func (m *sums) Reset()                                   { m.dirty, m.writing = nil, nil }

func (m *sums) failing(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *sums) Capture() Capture {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range m.dirty {
		if m.writing == nil {
			m.writing = map[string]uint64{}
		}
		m.writing[name] += n
	}
	m.dirty = nil
	return sumsCapture{m: m, add: m.writing}
}

type sumsCapture struct {
	m   *sums
	add map[string]uint64
}

func (c sumsCapture) Write(ctx context.Context, tx *sql.Tx) error {
	c.m.mu.Lock()
	err := c.m.fail
	c.m.mu.Unlock()
	for name, n := range c.add {
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO sums VALUES (?, ?) ON CONFLICT DO UPDATE SET total = total + excluded.total`, name, n)
		}
	}
	return err
}

func (c sumsCapture) Written() {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.writing = nil
}

func (m *sums) total(t testing.TB) (n uint64) {
	t.Helper()
	if err := m.db.QueryRow(`SELECT coalesce(sum(total), 0) FROM sums`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func open(t testing.TB, path string, o Options) (*Keeper, *sums) {
	t.Helper()
	m := &sums{}
	o.Path, o.Models = path, []Model{m}
	if o.Fold == "" {
		o.Fold = "1"
	}
	k, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k, m
}

var agg = event.SessionAggregate("wc_sess_00000000000000000000000000000001")

func applied(seq uint64) eventlog.Applied {
	a := eventlog.Applied{Seq: seq, Hash: fmt.Sprintf("%064x", seq), Commit: event.Commit{Aggregate: agg, Version: seq}}
	if seq == 1 {
		a.First, a.Root = true, 1
	}
	return a
}

func flush(t testing.TB, k *Keeper) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := k.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestKeeperGoesOnWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	k, m := open(t, path, Options{})
	for seq := range uint64(5) {
		k.Apply(applied(seq + 1))
	}
	k.Apply(applied(3)) // seen already
	flush(t, k)
	if n := m.total(t); n != 15 {
		t.Fatalf("total %d", n)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	k.Apply(applied(6))
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k, m = open(t, path, Options{})
	cp := must(k.Checkpoint())(t)
	if cp.Seq != 6 || cp.Hash != applied(6).Hash || cp.Aggregates != 1 || m.total(t) != 21 {
		t.Fatalf("%+v, total %d", cp, m.total(t))
	}
	h, ok, err := k.Head(agg)
	if err != nil || !ok || h.Version != 6 || h.Seq != 6 || h.Root != 1 {
		t.Fatalf("%+v %v %v", h, ok, err)
	}
	k.Apply(applied(7))
	if h, _, _ := k.Head(agg); h.Version != 7 || h.Root != 1 {
		t.Fatalf("%+v", h)
	}
	if err := k.Reset(eventlog.ResetForeign); err != nil {
		t.Fatal(err)
	}
	if cp := must(k.Checkpoint())(t); cp != (eventlog.BaseCheckpoint{}) || m.total(t) != 0 {
		t.Fatalf("after a reset: %+v", cp)
	}
	if _, ok, err := k.Head(agg); ok || err != nil {
		t.Fatal("a head survived the reset", err)
	}
}

// A file that does not fit is made again, whatever is wrong with it, and says why once.
func TestUnfitFilesAreMadeAgain(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"deleted": func(t *testing.T, path string) { _ = os.Remove(path) },
		"empty":   func(t *testing.T, path string) { _ = os.Truncate(path, 0) },
		"cut":     func(t *testing.T, path string) { _ = os.Truncate(path, 9000) },
		"short":   func(t *testing.T, path string) { _ = os.Truncate(path, 50) },
		"no database": func(t *testing.T, path string) {
			_ = os.WriteFile(path, []byte(strings.Repeat("no database ", 900)), 0o600)
		},
		"spoiled": func(t *testing.T, path string) { _ = os.WriteFile(path+"-spoiled", nil, 0o600) },
		"other":   nil,
		"checkpoint": func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", path)
			if err == nil {
				_, err = db.Exec(`UPDATE state_checkpoint SET seq = 99`)
			}
			if err == nil {
				err = db.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"zeroed": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt(make([]byte, 4000), 96)
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			k, _ := open(t, path, Options{})
			k.Apply(applied(1))
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			o := Options{}
			if spoil == nil {
				o.Fold = "2"
			} else {
				spoil(t, path)
			}
			k, m := open(t, path, o)
			if cp := must(k.Checkpoint())(t); cp.Seq != 0 || m.total(t) != 0 {
				t.Fatalf("it was believed: %+v", cp)
			}
			k.Apply(applied(1))
			flush(t, k)
			if m.total(t) != 1 {
				t.Fatal("it is not written again")
			}
		})
	}
}
