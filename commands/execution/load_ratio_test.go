package execution_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/internal/bench"
	"webcodex/runner/wire"
)

// atOnce is how many executions run beside each other in TestRatioAtOnce.
const atOnce = 64

// TestRatioAtOnce compares starts per second, 64 executions of true at a time, with as many
// forks and execs at a time from Go.
func TestRatioAtOnce(t *testing.T) {
	bench.Skip(t)
	w := newWorld(t)
	to := w.target(w.runner(t.TempDir()))
	together := func(one func()) time.Duration {
		begun := time.Now()
		var all sync.WaitGroup
		for range atOnce {
			all.Go(one)
		}
		all.Wait()
		return time.Since(begun)
	}
	bench.Run(t, bench.Comparison{Name: "64 executions of true at once vs 64 fork+exec at once", Bar: 0.3, Speed: true,
		Ours: func() time.Duration {
			return together(func() { w.run(w.execution(to, wire.OpProcess, process("true"), time.Minute)) })
		},
		Yardstick: func() time.Duration { return together(func() { forkExec(t) }) }})
}

// TestRatioFlood compares a command that prints 1 GB through an execution, of which a bounded
// tail is kept, with reading the same from a bare pipe; and holds what this process grows by
// while it happens.
func TestRatioFlood(t *testing.T) {
	bench.Skip(t)
	const size = 1_000_000_000
	print := []string{"-c", fmt.Sprint(size), "/dev/zero"}
	w := newWorld(t)
	to := w.target(w.runner(t.TempDir()))
	through := func() time.Duration {
		begun := time.Now()
		out := w.run(w.execution(to, wire.OpProcess, process("head", print...), time.Minute))
		if out.Process == nil || out.Process.Stdout.Bytes != size {
			t.Fatalf("%+v", out)
		}
		return time.Since(begun)
	}
	through()
	before := resident(t)
	most, stop := watchResident(t)
	bench.Run(t, bench.Comparison{Name: "1 GB of output through an execution vs a bare pipe", Bar: 0.3, Speed: true, Ours: through,
		Yardstick: func() time.Duration { return barePipe(t, print) }})
	stop()
	bench.Figure(t, "growth of memory while 1 GB of output passes, MiB", float64(*most-before)/(1<<20), 32, bench.MinPairs)
}

// barePipe reads what head prints with the buffer that costs least, and forgets it.
func barePipe(t *testing.T, args []string) time.Duration {
	t.Helper()
	begun := time.Now()
	cmd := exec.Command("head", args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	for err == nil {
		_, err = out.Read(buf)
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}

// resident is what this process holds in memory, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("the system does not tell how much memory is resident")
	}
	var size, pages int64
	if _, err := fmt.Fscan(strings.NewReader(string(raw)), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// watchResident follows the most that is resident until stop is called.
func watchResident(t *testing.T) (most *int64, stop func()) {
	most = new(int64)
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			*most = max(*most, resident(t))
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return most, func() { close(ended); <-done }
}
