package session

import (
	"testing"
	"time"
)

// BenchmarkRebuild folds a log whose Sessions' commits lie mixed, as a start without state.db
// does.
func BenchmarkRebuild(b *testing.B) {
	const sessions, each = 10_000, 6
	for b.Loop() {
		f := newFilled(b)
		began := time.Now()
		for v := range uint64(each) {
			for n := range sessions {
				f.feed(callCommit(sessionNo((n*7919)%sessions), v+1))
			}
		}
		f.flush(b)
		b.ReportMetric(float64(time.Since(began).Microseconds())/(sessions*each), "µs/commit")
	}
}

// coldSessions are some with a full tail, none of them in memory.
func coldSessions(b *testing.B) *filled {
	f := newFilled(b)
	for n := range rounds {
		f.full(sessionNo(n))
	}
	f.store.SetHotTarget(0)
	f.full(sessionNo(1 << 40))
	f.flush(b)
	return f
}

func BenchmarkColdRows(b *testing.B) {
	f := coldSessions(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := selectRows(f.store.file, sessionNo(1)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkColdOpen(b *testing.B) {
	f := coldSessions(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.store.Load(sessionNo(1)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkColdHandoff reads a Session with a full tail and makes its handoff.
func BenchmarkColdHandoff(b *testing.B) {
	f := coldSessions(b)
	b.ReportAllocs()
	for b.Loop() {
		v, err := f.store.Load(sessionNo(1))
		if err != nil {
			b.Fatal(err)
		}
		NewHandoff(v, all(), false, nil)
	}
}
