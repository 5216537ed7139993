package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// Size of the test that kills server and Runner, and cuts the wire between them.
const (
	remoteRounds     = 20
	remoteRoundsSoak = 200
	remoteClients    = 3
)

// remoteEnds are what happens while commands are on their way, in order.
var remoteEnds = [][]string{{"server"}, {"runner"}, {"server", "runner"}, {"runner", "server"}, {"wire"}}

// Server and Runner are killed with SIGKILL in both orders, and the wire between them is cut, while
// commands that leave a mark are on their way: no mark is there twice, every command that began
// has an end, what is recorded agrees with the disk, and only what a killed Runner had in hand is
// unknown.
//
// Covers: EXE-38, EVT-07
func TestRemoteRunnerKilledInBothOrders(t *testing.T) {
	t.Parallel()
	rounds := remoteRounds
	if os.Getenv("WEBCODEX_SOAK") != "" {
		rounds = remoteRoundsSoak
	}
	r := newRemote(t, "tls")
	begun := r.call("work_on_project", args{"project": r.project, "instruction": "leave marks"})
	var session struct {
		ID event.SessionID `json:"session_id"`
	}
	if err := begun.Decode(&session); err != nil || begun.IsError {
		t.Fatalf("%v %s", err, begun.Text)
	}
	issued, doubtful := 0, map[int]bool{} // what a Runner that dies leaves behind may be unknown (faults.md 3)
	for round := range rounds {
		ends := remoteEnds[round%len(remoteEnds)]
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var wg sync.WaitGroup
		for range remoteClients {
			n := issued
			issued++
			doubtful[n] = slices.Contains(ends, "runner")
			// The time-out tells the command from the others in the log, which holds no text.
			wg.Go(func() {
				_, _ = r.mcp.CallTool(ctx, "run_shell", args{"project": r.project, "session_id": session.ID, "timeout_secs": 30 + n,
					"command": fmt.Sprintf("echo m%d. >> ../marks; sleep 0.%d", n, n%3)})
			})
			time.Sleep(rand.N(20 * time.Millisecond))
		}
		time.Sleep(rand.N(60 * time.Millisecond))
		for _, what := range ends {
			switch what {
			case "server":
				r.server.kill()
			case "runner":
				r.runner.kill()
			case "wire":
				r.wire.set(true)
				time.Sleep(200 * time.Millisecond)
				r.wire.set(false)
			}
			time.Sleep(rand.N(20 * time.Millisecond))
		}
		r.restart(ends)
		time.Sleep(rand.N(100 * time.Millisecond))
		cancel() // the command goes on, or not: the log tells
		wg.Wait()
	}
	r.settle(session.ID)
	for _, c := range []*child{r.server, r.runner} {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
	r.compare(session.ID, issued, doubtful)
}

// restart brings back what was killed.
func (r *remote) restart(ends []string) {
	r.t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait() // a server that starts waits for the Runner that it has to ask
	for _, what := range ends {
		if what == "runner" {
			wg.Go(r.startRunner)
		}
	}
	for _, what := range ends {
		if what == "server" {
			r.startServer()
		}
	}
}

// settle waits until nothing of the Session is open.
func (r *remote) settle(id event.SessionID) {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		res := r.call("call_runtime_tool", args{"tool": "list_jobs", "arguments": args{"session_id": id}})
		var out struct {
			Open int `json:"active"`
		}
		if err := res.Decode(&out); err != nil || res.IsError {
			r.t.Fatalf("%v %s", err, res.Text)
		}
		if out.Open == 0 {
			return
		}
		if time.Now().After(end) {
			r.t.Errorf("%d Jobs are open: %s", out.Open, res.Text)
			return
		}
	}
}

// ended is a command's last word in the log.
type ended struct {
	timeout int
	state   event.ExecutionState
	there   bool
}

// compare holds the log against the marks.
func (r *remote) compare(id event.SessionID, issued int, doubtful map[int]bool) {
	t := r.t
	a, err := openArchive(t.Context(), r.data)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	byExec, byCall := map[event.ExecutionID]*ended{}, map[event.CallID]*ended{}
	err = a.log.Replay(t.Context(), eventlog.Range{Aggregate: event.SessionAggregate(id)}, func(e eventlog.Entry) error {
		for _, ev := range e.Commit.Events {
			switch ev := ev.(type) {
			case event.ToolCallStarted:
				if ev.Execution != nil {
					x := &ended{timeout: ev.Input.TimeoutSecs}
					byCall[ev.Call], byExec[ev.Execution.ID] = x, x
				}
			case event.ToolCallFinished:
				if x := byCall[ev.Call]; x != nil && !ev.Promoted {
					x.state, x.there = ev.Effect.State, true
				}
			case event.ExecutionFinished:
				if x := byExec[ev.Execution]; x != nil {
					x.state, x.there = ev.Effect.State, true
				}
			case event.ExecutionReconciled:
				if x := byExec[ev.Execution]; x != nil {
					x.state = ev.Effect.State
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	said := map[int]*ended{}
	for _, x := range byExec {
		said[x.timeout] = x
	}
	var unknown, notStarted, doubled, lies int
	for n := range issued {
		marks, x := r.marks(fmt.Sprintf("m%d.", n)), said[30+n]
		wrong := false
		switch {
		case marks > 1:
			doubled++
			wrong = true
		case x == nil: // its start was never committed
			wrong = marks != 0
		case !x.there:
			wrong = true
		case x.state == event.Completed:
			wrong = marks != 1
		case x.state == event.NotStarted:
			notStarted++
			wrong = marks != 0
		case x.state == event.OutcomeUnknown:
			unknown++
			wrong = !doubtful[n]
		case x.state == event.Cancelled: // the caller was gone before it was a Job: with its mark, or before it
		default:
			wrong = true
		}
		if wrong {
			lies++
			t.Errorf("command %d: %d marks, recorded as %+v", n, marks, x)
		}
	}
	t.Logf("%d commands: doubled %d, wrong %d, outcome unknown %d, not started %d", issued, doubled, lies, unknown, notStarted)
}
