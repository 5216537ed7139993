package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// Environment of the server that kills itself: its directory, what it does, and where it dies.
const (
	killDir   = "WEBCODEX_TEST_KILL_DIR"
	killDoes  = "WEBCODEX_TEST_KILL_DOES"
	killPoint = "WEBCODEX_TEST_KILL_POINT"
	killAtNth = "WEBCODEX_TEST_KILL_AT"
)

// killPoints of the committer, in the order a commit passes them.
var killPoints = []string{"before_publish", "after_publish", "after_ack", "after_sync", "after_apply"}

// dieAt are faults that end this process at the point of the nth commit once they are armed.
func dieAt(point string, nth int64, armed *atomic.Bool) *eventlog.Faults {
	var left atomic.Int64
	left.Store(nth)
	hook := func(name string) func(uint64) error {
		return func(uint64) error {
			if name == point && armed.Load() && left.Add(-1) == 0 {
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
				select {} // dead before the next step
			}
			return nil
		}
	}
	return &eventlog.Faults{BeforePublish: hook(killPoints[0]), AfterPublish: hook(killPoints[1]), AfterAck: hook(killPoints[2]),
		AfterSync: hook(killPoints[3]), AfterApply: hook(killPoints[4])}
}

// twice are calls that two Sessions keep: the one that the call works on, and its recorder.
// commits are theirs together: the starts, then the ends, the target before the recorder; of a
// message: the recorder's start, the message, the recorder's end.
var twice = map[string]struct {
	commits int
	tool    string
	args    func(w *world, mark string) args
	marks   func(w *world, mark string) int
}{
	"command": {4, "run_shell", func(w *world, mark string) args {
		return args{"project": w.project, "command": "echo " + mark + " >> ../marks; exit 3"}
	}, marked},
	"edit": {4, "edit_project_files", func(w *world, mark string) args {
		return args{"project": w.project, "changes": []args{{"kind": "create", "path": mark, "content": "x"}}}
	}, func(w *world, mark string) int {
		if _, err := os.Stat(filepath.Join(w.repo, mark)); err != nil {
			return 0
		}
		return 1
	}},
	"test": {4, "go_test", func(w *world, _ string) args { return args{"project": w.project, "require_tests": true} },
		func(*world, string) int { return 1 }},
	"message": {3, "post_session_message", func(_ *world, mark string) args {
		return args{"kind": "note", "message": mark, "delivery_key": mark}
	}, nil},
}

func marked(w *world, mark string) int {
	b, _ := os.ReadFile(filepath.Join(filepath.Dir(w.repo), "marks"))
	return strings.Count(string(b), mark+"\n")
}

// TestKillBetweenChild is the server that dies; alone it does nothing.
func TestKillBetweenChild(t *testing.T) {
	base := os.Getenv(killDir)
	if base == "" {
		t.Skip("only as a child")
	}
	nth, err := strconv.ParseInt(os.Getenv(killAtNth), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var armed atomic.Bool
	w := openWorld(t, base, func(f *upFlags) { f.faults = dieAt(os.Getenv(killPoint), nth, &armed) })
	target, recorder := w.work(args{}).SessionID, w.work(args{}).SessionID
	answered := must[struct {
		Event event.EventID `json:"session_event_id"`
	}](w, "run_shell", args{"project": w.project, "session_id": target, "command": "true", "_wc": args{"record": recorder}})
	fmt.Printf("died=%s,%s,%s\n", target, recorder, answered.Event)
	what := twice[os.Getenv(killDoes)]
	a := what.args(w, string(target))
	a["session_id"], a["_wc"] = target, args{"record": recorder}
	armed.Store(true)
	w.call(what.tool, a)
	t.Error("still alive")
}

// killBetween runs the child to its death and gives what it said before.
func killBetween(t *testing.T, base, what, point string, nth int) (target, recorder event.SessionID, answered event.EventID) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKillBetweenChild$")
	cmd.Env = append(os.Environ(), killDir+"="+base, killDoes+"="+what, killPoint+"="+point, killAtNth+"="+strconv.Itoa(nth))
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child did not die there: %v\n%s", err, out)
	}
	_, rest, _ := strings.Cut(string(out), "died=")
	line, _, _ := strings.Cut(rest, "\n")
	free(t, filepath.Join(base, "data"))
	said := strings.Split(line, ",")
	if len(said) != 3 {
		t.Fatalf("the child said %s", out)
	}
	return event.SessionID(said[0]), event.SessionID(said[1]), event.EventID(said[2])
}

// free waits until nobody holds the data directory: what the dead server was about to start has
// its lock until it is another program.
func free(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// A call that two Sessions keep is killed between any two of its commits, also between its end in
// the one and its end in the other. After the restart every start has one end, both ends say the
// same and what they say is so; what was answered before is there, and nothing happened twice.
//
// Covers: EVT-08, EVT-11, EVT-30, MSG-27, RES-20
func TestAKillBetweenTheEndsOfTwoSessions(t *testing.T) {
	t.Parallel()
	soak := os.Getenv("WEBCODEX_SOAK") != ""
	base := t.TempDir()
	for what, d := range twice {
		for nth := 1; nth <= d.commits; nth++ {
			for _, point := range killPoints {
				// Between the end, or the message, in the target and the end in its recorder.
				between := nth == d.commits && point == killPoints[0] || nth == d.commits-1 && point == killPoints[4]
				if !soak && !between && (what == "test" || point != killPoints[0]) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%s", what, nth, point), func(t *testing.T) {
					target, recorder, answered := killBetween(t, base, what, point, nth)
					w := openWorld(t, base, func(*upFlags) {})
					one, two := w.kept(target, answered), w.kept(recorder, "")
					if d.marks == nil {
						w.message(target, two, between)
						return
					}
					agree(t, one, two)
					for _, f := range slices.Concat(one.ends, two.ends) {
						n := d.marks(w, string(target))
						switch f.Effect.State {
						case event.Completed:
							if n != 1 {
								t.Errorf("recorded as completed, %d marks", n)
							}
						case event.NotStarted:
							if n != 0 && what != "test" {
								t.Errorf("recorded as not started, %d marks", n)
							}
						default:
							if nth >= d.commits-1 {
								t.Errorf("the Runner's journal proves the end, and it is recorded as %s", f.Effect.State)
							}
						}
					}
					if between && (len(one.ends) != 1 || len(two.ends) != 1 || one.ends[0].Effect.State != event.Completed || two.ends[0].Recovered != (nth == d.commits || point == killPoints[4])) {
						t.Errorf("%+v\n%+v", one, two)
					}
				})
			}
		}
	}
}

// keeps is what a Session has of the call that was killed.
type keeps struct {
	starts []event.ToolCallStarted
	ends   []event.ToolCallFinished
	invs   []event.InvocationID
	posts  int
}

// kept reads a Session's last call; the call before it was answered and must be whole.
func (w *world) kept(id event.SessionID, answered event.EventID) (k keeps) {
	w.t.Helper()
	first, had := event.CallID(""), false
	err := w.srv.log.Replay(context.Background(), eventlog.Range{Aggregate: event.SessionAggregate(id)}, func(e eventlog.Entry) error {
		for i, ev := range e.Commit.Events {
			had = had || event.TailEventID(e.Commit.Aggregate, e.Commit.Version, i) == answered
			switch ev := ev.(type) {
			case event.ToolCallStarted:
				if first == "" {
					first = ev.Call
				} else {
					k.starts, k.invs = append(k.starts, ev), append(k.invs, e.Commit.Invocation)
				}
			case event.ToolCallFinished:
				if ev.Call != first {
					k.ends = append(k.ends, ev)
				}
			case event.MessagePosted:
				k.posts++
			}
		}
		return nil
	})
	core, _ := w.srv.store.Core(id)
	if err != nil || len(k.starts) > 1 || len(k.starts) != len(k.ends) || len(core.Open) != 0 || len(core.Unknown) != 0 && len(k.ends) == 0 {
		w.t.Errorf("%s: %d starts, %d ends, %d open: %v", id, len(k.starts), len(k.ends), len(core.Open), err)
	}
	if answered != "" && !had {
		w.t.Errorf("%s: the answered call is lost", id)
	}
	return k
}

// agree holds the two ends against each other.
func agree(t *testing.T, one, two keeps) {
	t.Helper()
	if len(one.ends) == 0 || len(two.ends) == 0 {
		return
	}
	said := func(f event.ToolCallFinished) event.ToolCallFinished {
		f.Call, f.Role, f.DurationMS, f.Recovered, f.ErrorSummary = "", "", 0, false, ""
		slices.Sort(f.Changed)
		return f
	}
	if d := cmp.Diff(said(one.ends[0]), said(two.ends[0])); d != "" || one.ends[0].Call == two.ends[0].Call || one.invs[0] != two.invs[0] {
		t.Errorf("the two ends differ:\n%s", d)
	}
}

// message checks a post that a recorder kept: it is on the board once or not at all, sent again it
// is the same one, and the recorder does not claim to know more.
func (w *world) message(target event.SessionID, recorder keeps, made bool) {
	w.t.Helper()
	posts := func() int { return w.kept(target, "").posts }
	n := posts()
	if n > 1 || made && n != 1 {
		w.t.Errorf("%d messages", n)
	}
	for _, f := range recorder.ends {
		if !f.Recovered && n == 1 && f.Status == event.StatusSucceeded {
			continue // it had its end before
		}
		if !f.Recovered || f.Effect.State != event.OutcomeUnknown || !f.Effect.StateChanged || f.Effect.CommandStarted || f.ErrorKind != "outcome_unknown" {
			w.t.Errorf("the recorder has %+v", f)
		}
	}
	again := must[struct {
		Replayed bool `json:"replayed"`
	}](w, "post_session_message", with(twice["message"].args(w, string(target)), args{"session_id": target}))
	v, err := w.srv.store.Load(target)
	if err != nil || again.Replayed != (n == 1) || posts() != 1 || v.Board.Len() != 1 || v.Core.Lifecycle != session.Active {
		w.t.Errorf("%d messages, then %d; replayed %v, %v", n, posts(), again.Replayed, err)
	}
}
