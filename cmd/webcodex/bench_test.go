package main

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkReady is the time from the start of the process `up --json` to its ready line, on
// this repository's own checkout with a fresh data directory (cold), and with one that a
// server was killed on (warm).
func BenchmarkReady(b *testing.B) {
	repo, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	exe := program(b)
	run := func(b *testing.B, dir func() string) {
		var total, worst time.Duration
		n := 0
		for b.Loop() {
			c, err := startChild(b.Context(), exe, nil, "--data", dir(), "--listen", "127.0.0.1:0", "--", repo)
			if err != nil {
				b.Fatal(err)
			}
			c.kill()
			total, worst, n = total+c.took, max(worst, c.took), n+1
		}
		b.ReportMetric(float64(total.Milliseconds())/float64(n), "ready-ms")
		b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
	}
	b.Run("fresh", func(b *testing.B) { run(b, func() string { return filepath.Join(b.TempDir(), "data") }) })
	b.Run("killed", func(b *testing.B) {
		dir := filepath.Join(b.TempDir(), "data")
		run(b, func() string { return dir })
	})
}
