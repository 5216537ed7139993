package eventlog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/bench"
	"webcodex/projections/session"
)

// A fold of 100,000 commits into the Sessions, each hashed, decoded and checked against its
// chain, against the same feed with nothing behind it.
func TestRatioFold(t *testing.T) {
	bench.Skip(t)
	l, err := eventlog.Open(t.Context(), eventlog.Options{Dir: t.TempDir(), Durability: eventlog.Process,
		MaxBytes: 8 << 30, Server: event.NewInstanceID()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const sessions, commits = 100, 1000
	work(t, l, sessions, commits)
	want := sessions*commits + 1
	bench.Run(t, bench.Comparison{Name: "fold_100k_commits", Bar: 0.5, Speed: true,
		Ours: func() time.Duration {
			store, seen, start := session.NewStore(), 0, time.Now()
			err := l.Replay(context.Background(), eventlog.Range{}, func(e eventlog.Entry) error {
				store.Apply(e.Seq, e.Hash, e.Commit)
				seen++
				return nil
			})
			took := time.Since(start)
			if err != nil || seen != want || store.Applied() != uint64(want) {
				t.Errorf("%d of %d: %v", seen, want, err)
			}
			return took
		},
		Yardstick: func() time.Duration {
			start := time.Now()
			seen, err := l.Feed(context.Background())
			took := time.Since(start)
			if err != nil || seen != want {
				t.Errorf("%d of %d: %v", seen, want, err)
			}
			return took
		}})
}

// work fills the log: every Session is created and then makes calls, a commit for each start
// and each finish.
func work(t *testing.T, l *eventlog.Log, sessions, commits int) {
	t.Helper()
	var wg sync.WaitGroup
	for s := range sessions {
		wg.Add(1)
		go func() {
			defer wg.Done()
			a := event.SessionAggregate(event.NewSessionID())
			for i := range commits {
				head, err := l.Head(a)
				if err == nil {
					_, err = l.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(),
						Actor: event.Actor{Credential: "owner"}, Invocation: event.NewInvocationID(), Events: call(s, i)})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
}

func call(s, i int) []event.Event {
	id, exit := event.CallID(fmt.Sprintf("wc_call_%016x%016x", s, i/2)), 0
	switch {
	case i == 0:
		return []event.Event{event.SessionCreated{Nonce: event.NewNonce(), Authority: event.Hash(nil), Principal: event.Hash(nil),
			Project: event.ProjectRef{Client: "laptop", Project: "webcodex"}, Title: "Make the failing test pass", Mode: event.ModeNormal}}
	case i%2 == 0:
		return []event.Event{event.ToolCallStarted{Call: id, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp_http",
			Input: event.Input{Executable: "go", ArgCount: 3, Cwd: "internal/server", TimeoutSecs: 120, Purpose: "validation"}}}
	case i == 1:
		return []event.Event{event.InstructionAccepted{Text: "Go on", Continuation: "resumed", Mode: event.ModeNormal}}
	default:
		return []event.Event{event.ToolCallFinished{Call: id, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp_http",
			Status: event.StatusSucceeded, DurationMS: 1234, ExitCode: &exit, Observed: []string{"internal/server/http.go"},
			Effect: event.Effect{CommandStarted: true, CommandCompleted: true, State: event.Completed}, Expectation: "met"}}
	}
}
