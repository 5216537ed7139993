package proc_test

import (
	"io"
	osexec "os/exec"
	"testing"
	"time"
)

// BenchmarkTrue is one execution of true; BenchmarkForkExec is the least it can cost in Go.
func BenchmarkTrue(b *testing.B) {
	c := command(b, time.Minute, "true")
	for b.Loop() {
		run(b, c)
	}
}

// BenchmarkForkExec starts true with both streams read, as a caller without us would.
func BenchmarkForkExec(b *testing.B) {
	for b.Loop() {
		cmd := osexec.Command("true")
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
