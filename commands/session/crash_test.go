package session_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// Environment of the child that kills itself: directory, point, and which commit.
const (
	crashDir   = "WEBCODEX_TEST_CRASH_DIR"
	crashPoint = "WEBCODEX_TEST_CRASH_POINT"
	crashAt    = "WEBCODEX_TEST_CRASH_AT"
	crashDoes  = "WEBCODEX_TEST_CRASH_DOES"
)

// points of the committer, in the order a commit passes them.
var points = []string{"before_publish", "after_publish", "after_ack", "after_sync", "after_apply"}

// killAt is faults that end this process at the point of the n-th commit from now on.
func killAt(point string, n int64, armed *atomic.Bool) *eventlog.Faults {
	var left atomic.Int64
	left.Store(n)
	hook := func(name string) func(uint64) error {
		if name != point {
			return nil
		}
		return func(uint64) error {
			if armed.Load() && left.Add(-1) == 0 {
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
				select {} // dead before the next step
			}
			return nil
		}
	}
	return &eventlog.Faults{BeforePublish: hook(points[0]), AfterPublish: hook(points[1]), AfterAck: hook(points[2]),
		AfterSync: hook(points[3]), AfterApply: hook(points[4])}
}

// does are the commands over two aggregates: what came before it, and the command itself.
var does = map[string]struct {
	commits int
	before  func(e *calltest.Env) event.SessionID
	run     func(e *calltest.Env, id event.SessionID)
}{
	"start": {2, func(*calltest.Env) event.SessionID { return "" },
		func(e *calltest.Env, _ event.SessionID) { start(e, args{"project": "~p1"}) }},
	"remove": {2, func(e *calltest.Env) event.SessionID { return start(e, args{"project": alpha}).SessionID },
		func(e *calltest.Env, id event.SessionID) {
			calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": id})
		}},
	"list": {1, func(e *calltest.Env) event.SessionID { return start(e, args{"project": alpha}).SessionID },
		func(e *calltest.Env, _ event.SessionID) { list(e, colleague(), args{"project": alpha}) }},
}

// TestCrashChild is the process that is killed; alone it does nothing.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("only as a child")
	}
	n, err := strconv.ParseInt(os.Getenv(crashAt), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var armed atomic.Bool
	e := calltest.At(t, dir, nil)
	e.Faults, e.Limit = killAt(os.Getenv(crashPoint), n, &armed), 0
	e.Reopen()
	d := does[os.Getenv(crashDoes)]
	id := d.before(e)
	fmt.Printf("session=%s\n", id)
	armed.Store(true)
	d.run(e, id)
	t.Error("still alive")
}

// crash kills a child at the point of the n-th commit of a command.
func crash(t *testing.T, dir, what, point string, n int) event.SessionID {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestCrashChild$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashPoint+"="+point, crashAt+"="+strconv.Itoa(n), crashDoes+"="+what)
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child did not die there: %v\n%s", err, out)
	}
	_, rest, _ := strings.Cut(string(out), "session=")
	id, _, _ := strings.Cut(rest, "\n")
	return event.SessionID(strings.TrimSpace(id))
}

// After a kill at any point of the commands over two aggregates (a number and the Session that
// binds it; a close and the removal that follows) nothing is half there after the restart: no
// number is given twice, a Session has all of its start or is not there, and history is bounded.
//
// Covers: SES-11, SES-33, STA-10, RES-12
func TestAKillBetweenTwoCommits(t *testing.T) {
	dir := t.TempDir()
	e := calltest.At(t, dir, nil)
	first := start(e, args{"project": alpha})
	if err := e.Log.Close(); err != nil {
		t.Fatal(err)
	}
	given := map[string]event.SessionID{first.SessionRef: first.SessionID}
	for what, d := range does {
		for n := 1; n <= d.commits; n++ {
			for _, point := range points {
				if os.Getenv("WEBCODEX_SOAK") == "" && point != "before_publish" && point != "after_apply" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%s", what, n, point), func(t *testing.T) {
					id := crash(t, dir, what, point, n)
					e := calltest.At(t, dir, nil)
					e.Limit = 0
					e.Reopen()
					defer func() { _ = e.Log.Close() }()
					whole(t, e, given)
					if what == "remove" {
						removedOrOpen(t, e, id)
					}
				})
			}
		}
	}
}

// whole checks every Session and number after a crash, and that the next number is a new one.
func whole(t *testing.T, e *calltest.Env, given map[string]event.SessionID) {
	t.Helper()
	page, _, err := e.Store.Select(view.Filter{AnyAuthority: true}, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range page {
		if c.Lifecycle == view.Closed {
			t.Errorf("%s is Closed and was not removed", c.ID)
		}
		events := e.Events(c.ID)
		if len(events) < 3 {
			t.Fatalf("%s is half there: %+v", c.ID, events)
		}
		bound, ok := events[2].(event.SessionRefBound)
		if !ok {
			t.Fatalf("%s has no number: %+v", c.ID, events)
		}
		ref := event.RefSession.Ref(bound.Number)
		if had := given[ref]; had != "" && had != c.ID {
			t.Errorf("%s was given to %s and to %s", ref, had, c.ID)
		}
		given[ref] = c.ID
	}
	s := start(e, args{"project": alpha})
	if had := given[s.SessionRef]; had != "" || s.SessionRef == "" {
		t.Errorf("%s was given to %s and to %s", s.SessionRef, had, s.SessionID)
	}
	given[s.SessionRef] = s.SessionID
	for ref, id := range given {
		resp, err := e.Call(&session.ReadSummary, args{"session_id": ref})
		if err == nil && !strings.Contains(string(resp.Output), string(id)) {
			t.Errorf("%s leads to %s, want %s", ref, resp.Output, id)
		}
		if k := fault.KindOf(err); k != "" && k != fault.SessionExpired && k != fault.UnknownSessionRef {
			t.Errorf("%s: %v", ref, err)
		}
	}
	theirs := map[string]event.SessionID{}
	for range 2 {
		for _, r := range list(e, colleague(), args{"project": alpha, "limit": 20}).Sessions {
			if had := theirs[r.SessionRef]; had != "" && had != r.SessionID || r.SessionRef == "" {
				t.Errorf("%s is %s and %s for the colleague", r.SessionRef, had, r.SessionID)
			}
			theirs[r.SessionRef] = r.SessionID
		}
	}
}

// removedOrOpen: the close either never happened, or the Session is gone for everybody.
func removedOrOpen(t *testing.T, e *calltest.Env, id event.SessionID) {
	t.Helper()
	_, err := e.CallAs(context.Background(), calltest.Owner(), &session.ReadSummary, args{"session_id": id})
	core, there := e.Store.Core(id)
	if there != (err == nil) || there && core.Lifecycle != view.Active {
		t.Errorf("%s is there: %v (%q), and answers %v", id, there, core.Lifecycle, err)
	}
	if k := fault.KindOf(err); k != "" && k != fault.UnknownSessionID { // limit 0 keeps no tombstone
		t.Errorf("%v", err)
	}
}
