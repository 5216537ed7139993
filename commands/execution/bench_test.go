package execution_test

import (
	"io"
	"os/exec"
	"testing"
	"time"

	"webcodex/internal/bench"
	"webcodex/runner/wire"
)

// rounds of one measurement: a single start varies too much to be compared.
const rounds = 20

// TestRatioRunTrue compares an execution of true through offer, claim, grant, journal and
// result with the least that a start costs from Go. The journal does not sync here, as in
// durability process.
func TestRatioRunTrue(t *testing.T) {
	bench.Skip(t)
	w := newWorld(t)
	l := w.runner(t.TempDir())
	to := w.target(l)
	bench.Run(t, bench.Comparison{Name: "execution of true / fork+exec", Bar: 1.5, AtMost: true,
		Ours: func() time.Duration {
			begun := time.Now()
			for range rounds {
				w.run(w.execution(to, wire.OpProcess, process("true"), time.Minute))
			}
			return time.Since(begun)
		},
		Yardstick: func() time.Duration {
			begun := time.Now()
			for range rounds {
				forkExec(t)
			}
			return time.Since(begun)
		}})
}

func forkExec(t testing.TB) {
	cmd := exec.Command("true")
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}
