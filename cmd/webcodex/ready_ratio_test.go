package main

import (
	"path/filepath"
	"testing"
	"time"

	"webcodex/internal/bench"
)

// readyBar is what a person waits at most: from the start of the process to the ready line.
const readyBar = 2 * time.Second

// `up --json` on this repository's own checkout as a share of the allowed time: with a fresh
// data directory, and with one whose server was killed each time before.
func TestRatioReady(t *testing.T) {
	bench.Skip(t)
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	measure := func(t *testing.T, name string, dir func() string) {
		bench.Run(t, bench.Comparison{Name: name, Bar: 1, AtMost: true,
			Yardstick: func() time.Duration { return readyBar },
			Ours: func() time.Duration {
				c, err := startChild(t.Context(), program(t), nil, "--data", dir(), "--listen", "127.0.0.1:0", "--", repo)
				if err != nil {
					t.Fatal(err)
				}
				c.kill()
				return c.took
			}})
	}
	t.Run("fresh", func(t *testing.T) {
		measure(t, "2 up --json, fresh data directory, vs 2 s", func() string { return filepath.Join(t.TempDir(), "data") })
	})
	t.Run("killed", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		measure(t, "2 up --json after kill -9 vs 2 s", func() string { return dir })
	})
}
