package eventlog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"webcodex/internal/bench"
)

// rawSync writes the same bytes to a file and syncs each time: the least a durable append of
// one writer costs.
func rawSync(t *testing.T, f *os.File, body []byte, n int) time.Duration {
	t.Helper()
	start := time.Now()
	for range n {
		if _, err := f.Write(body); err != nil {
			t.Fatal(err)
		}
		if err := fdatasync(f); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(start)
}

// A durable append of one writer, decision head to released reply, against the bare write
// and fdatasync of the same bytes.
func TestRatioDurableAppend(t *testing.T) {
	for _, mode := range []Durability{Always, Group} {
		t.Run(string(mode), func(t *testing.T) {
			bench.Skip(t)
			l, r := open(t, t.TempDir(), func(o *Options) { o.Durability, o.MaxBytes = mode, 8<<30 }), newRaw(t, Process)
			f, err := os.Create(filepath.Join(t.TempDir(), "raw"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			bench.Run(t, bench.Comparison{Name: fmt.Sprintf("append_3_events_%s_1_writer", mode), Bar: 0.6, Speed: true, Pairs: 30,
				Ours:      func() time.Duration { return writers(t, l, 1, 200) },
				Yardstick: func() time.Duration { return rawSync(t, f, r.body, 200) }})
		})
	}
}

// Appends of 64 writers that share syncs, against JetStream's own SyncAlways.
func TestRatioGroupCommit(t *testing.T) {
	bench.Skip(t)
	l, r := open(t, t.TempDir(), func(o *Options) { o.Durability, o.MaxBytes = Group, 8<<30 }), newRaw(t, Always)
	bench.Run(t, bench.Comparison{Name: "append_3_events_group_64_writers", Bar: 5, Speed: true, Pairs: 20,
		Ours:      func() time.Duration { return writers(t, l, 64, 10) },
		Yardstick: func() time.Duration { return r.publish(t, 64, 10) }})
}
