package eventlog

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Environment of a child process that plays a part of a test.
const (
	envChild = "EVENTLOG_TEST_CHILD"
	envDir   = "EVENTLOG_TEST_DIR"
	envMode  = "EVENTLOG_TEST_DURABILITY"
	envPoint = "EVENTLOG_TEST_POINT"
)

func TestMain(m *testing.M) {
	switch os.Getenv(envChild) {
	case "":
		os.Exit(m.Run())
	case "open":
		childOpen()
	case "write":
		childWrite(nil, 0)
	case "large":
		childWrite(nil, 200<<10)
	case "die":
		childWrite(dieAt(os.Getenv(envPoint), 7), 0)
	case "full":
		childFull()
	}
}

// said is a line a child prints.
type said struct {
	Kind fault.Kind      `json:"kind,omitempty"`
	Agg  string          `json:"agg,omitempty"`
	Ver  uint64          `json:"ver,omitempty"`
	ID   event.CommandID `json:"id,omitempty"`
	End  bool            `json:"end,omitempty"`
}

var sayMu sync.Mutex

func say(s said) {
	b, _ := json.Marshal(s)
	sayMu.Lock()
	defer sayMu.Unlock()
	_, _ = os.Stdout.Write(append(b, '\n'))
}

func childOptions() Options {
	return Options{Dir: os.Getenv(envDir), Durability: Durability(os.Getenv(envMode)), MaxBytes: 1 << 30, Server: event.NewInstanceID()}
}

func childOpen() {
	l, err := Open(context.Background(), childOptions())
	say(said{Kind: fault.KindOf(err)})
	if err == nil {
		_ = l.Close()
	}
}

// childWrite appends commits of three events from eight writers, with so many bytes of text,
// and names each one that was acknowledged, until it is killed.
func childWrite(f *Faults, text int) {
	o := childOptions()
	o.Faults = f
	l, err := Open(context.Background(), o)
	if err != nil {
		say(said{Kind: fault.KindOf(err)})
		return
	}
	for w := range 8 {
		go func() {
			a := event.SessionAggregate(event.SessionID("writer-" + strconv.Itoa(w)))
			for i := 0; ; i++ {
				head, err := l.Head(a)
				if err != nil {
					return
				}
				d := Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(), Events: threeEvents(i)}
				if text > 0 {
					d.Events[2] = event.InstructionAccepted{Text: strings.Repeat("x", text)}
				}
				r, err := l.Append(context.Background(), d)
				if err != nil {
					say(said{Kind: fault.KindOf(err)})
					return
				}
				say(said{Agg: a.ID, Ver: r.Commit.Version, ID: d.ID})
			}
		}()
	}
	select {}
}

// dieAt kills the process at a named point of the nth commit, as kill -9 would.
func dieAt(point string, n uint64) *Faults {
	die := func(seq uint64) error {
		if seq >= n {
			_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
			select {}
		}
		return nil
	}
	f := &Faults{}
	switch point {
	case "before_publish":
		f.BeforePublish = die
	case "after_publish":
		f.AfterPublish = die
	case "after_ack":
		f.AfterAck = die
	case "after_sync":
		f.AfterSync = die
	case "after_apply":
		f.AfterApply = die
	}
	return f
}

// childFull writes until the file system takes no more. A limit on the size of a file stands
// in for a full disk: the store's write fails in the same place.
func childFull() {
	o := childOptions()
	l, err := Open(context.Background(), o)
	if err != nil {
		say(said{Kind: fault.KindOf(err)})
		return
	}
	limit := unix.Rlimit{Cur: 300 << 10, Max: 300 << 10}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		say(said{Kind: "no_limit"})
		return
	}
	a := event.SessionAggregate("writer-0")
	for i := 0; i < 5000; i++ {
		head, _ := l.Head(a)
		d := Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(), Events: threeEvents(i)}
		if _, err := l.Append(context.Background(), d); err != nil {
			say(said{Kind: fault.KindOf(err)})
			break
		}
		say(said{Agg: a.ID, Ver: head.Version + 1, ID: d.ID})
	}
	select {
	case <-l.Failed():
		say(said{Kind: fault.KindOf(l.Admit())})
	default:
	}
	_ = l.Close()
	say(said{End: true})
}

// child runs this test binary in a part and gives what it acknowledged; kill ends it with
// SIGKILL after it said so many lines.
func child(t *testing.T, part, dir string, mode Durability, point string, kill int) []said {
	t.Helper()
	return runChild(t, part, dir, mode, point, kill, nil)
}

// childUntil runs a part, does something after it said so many lines, and kills it then.
func childUntil(t *testing.T, part, dir string, mode Durability, lines int, do func()) (acked []said) {
	t.Helper()
	for _, s := range runChild(t, part, dir, mode, "", lines, do) {
		if s.ID != "" {
			acked = append(acked, s)
		}
	}
	return acked
}

func runChild(t *testing.T, part, dir string, mode Durability, point string, kill int, do func()) []said {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), envChild+"="+part, envDir+"="+dir, envMode+"="+string(mode), envPoint+"="+point)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []said
	for s := bufio.NewScanner(out); s.Scan(); {
		var line said
		if json.Unmarshal(s.Bytes(), &line) == nil && strings.HasPrefix(s.Text(), "{") {
			lines = append(lines, line)
		}
		if kill > 0 && len(lines) == kill {
			if do != nil {
				do()
			}
			_ = cmd.Process.Signal(syscall.SIGKILL)
		}
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatal("the child did not end in time")
	}
	return lines
}

// checkWhole replays the log, which checks versions and chain, and wants every acknowledged
// commit of three events in it, once.
func checkWhole(t *testing.T, l *Log, acked []said) {
	t.Helper()
	found := map[event.CommandID]string{}
	err := l.Replay(context.Background(), Range{}, func(e Entry) error {
		c := e.Commit
		if _, twice := found[c.ID]; twice {
			return fmt.Errorf("command %s stands twice", c.ID)
		}
		if c.Aggregate.Domain == event.DomainSession && len(c.Events) != 3 {
			return fmt.Errorf("commit %d has %d of its 3 events", e.Seq, len(c.Events))
		}
		found[c.ID] = c.Aggregate.ID + " " + strconv.FormatUint(c.Version, 10)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, a := range acked {
		if a.Kind != "" {
			t.Errorf("a writer was refused: %s", a.Kind)
		} else if found[a.ID] != a.Agg+" "+strconv.FormatUint(a.Ver, 10) {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged commits are lost", lost, len(acked))
	}
}
