package eventlog

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/bench"
)

// threeEvents is the commit of the usual call that ends: about 1.5 KB.
func threeEvents(i int) []event.Event {
	call, exit := event.CallID(fmt.Sprintf("wc_call_%032x", i)), 0
	exec := event.ExecutionID(fmt.Sprintf("wc_exec_%032x", i))
	return []event.Event{
		event.ToolCallStarted{Call: call, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp_http",
			Input: event.Input{Executable: "go", ArgCount: 3, Cwd: "internal/server", TimeoutSecs: 120, Purpose: "validation"},
			Execution: &event.Execution{ID: exec, Client: "laptop", Instance: event.InstanceID(fmt.Sprintf("wc_inst_%032x", 1)),
				Root: "5f0c6a1d2b3e4f50", Digest: event.Hash(nil), Op: "process"}},
		event.ToolCallFinished{Call: call, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp_http",
			Status: event.StatusSucceeded, DurationMS: 1234, ExitCode: &exit, Execution: exec, Observed: []string{"internal/server/http.go"},
			Effect: event.Effect{CommandStarted: true, CommandCompleted: true, State: event.Completed}, Expectation: "met"},
		event.InstructionAccepted{Text: "Make the failing test in internal/server pass without changing its expectations.",
			Continuation: "resumed", Mode: event.ModeNormal, Transport: "mcp_http"},
	}
}

// writers appends n commits per writer, each to a Session of its own, and gives the time.
func writers(t *testing.T, l *Log, count, n int) time.Duration {
	t.Helper()
	var wg sync.WaitGroup
	events := make([][]event.Event, n)
	for i := range events {
		events[i] = threeEvents(i)
	}
	start := time.Now()
	for range count {
		wg.Add(1)
		go func() {
			defer wg.Done()
			a := event.SessionAggregate(event.NewSessionID())
			for i := range n {
				d := draft(l, t, a)
				d.Invocation, d.Events = event.NewInvocationID(), events[i]
				if _, err := l.Append(context.Background(), d); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	return time.Since(start)
}

// raw is the yardstick: the same bytes published to a stream of the same configuration.
type raw struct {
	js   jetstream.JetStream
	body []byte
}

func newRaw(t *testing.T, durability Durability) *raw {
	t.Helper()
	dir := t.TempDir()
	auth := newAuthority(discard)
	srv, err := startServer(dir, durability, RunnerListen{}, auth, &serverLog{log: discard, writeError: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	nc, err := auth.connect(grant{"raw", accountLog, everything()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(context.Background(), streamConfig(8<<30)); err != nil {
		t.Fatal(err)
	}
	c := event.Commit{Format: 1, ID: event.NewCommandID(), Aggregate: event.SessionAggregate(event.NewSessionID()), Version: 12345,
		Prev: event.Hash(nil), At: time.Now(), Actor: event.Actor{Credential: "owner"}, Invocation: event.NewInvocationID(),
		Server: event.NewInstanceID(), Events: threeEvents(1)}
	body, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &raw{js, body}
}

func (r *raw) publish(t *testing.T, count, n int) time.Duration {
	t.Helper()
	var wg sync.WaitGroup
	start := time.Now()
	for w := range count {
		wg.Add(1)
		go func() {
			defer wg.Done()
			subject := subjectOf(event.SessionAggregate(event.SessionID("raw" + strconv.Itoa(w))))
			for range n {
				if _, err := r.js.PublishMsg(context.Background(), &nats.Msg{Subject: subject, Data: r.body}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	return time.Since(start)
}

// The append of a three-event commit, decision head to released reply, against the bare
// publication of the same bytes.
func TestRatioAppend(t *testing.T) {
	for _, c := range []struct{ writers, n int }{{1, 3000}, {64, 150}} {
		t.Run(strconv.Itoa(c.writers), func(t *testing.T) {
			bench.Skip(t)
			l, r := open(t, t.TempDir(), func(o *Options) { o.MaxBytes = 8 << 30 }), newRaw(t, Process)
			bench.Run(t, bench.Comparison{Name: fmt.Sprintf("append_3_events_%d_writers", c.writers), Bar: 0.6, Speed: true, Pairs: 30,
				Ours:      func() time.Duration { return writers(t, l, c.writers, c.n) },
				Yardstick: func() time.Duration { return r.publish(t, c.writers, c.n) }})
		})
	}
}
