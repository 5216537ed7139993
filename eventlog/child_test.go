package eventlog

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
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

// envPart holds what a child process plays, as JSON.
const envPart = "EVENTLOG_TEST_PART"

// part is what a child process of a test plays.
type part struct {
	Play  string // open, write or full
	Dir   string
	Mode  Durability
	Die   string // the named point of the committer at which it kills itself
	After uint64 // the commit from which on it does
	// Writers append commits of three events with so many bytes of text, 8 where it is 0.
	Writers, Text int
	// Carry has one more writer bring carried states forward, in parts.
	Carry bool
	// Prune has the log pruned again and again meanwhile.
	Prune bool
	// Budget of the log in bytes, 1 GiB where it is 0; Group stands in for maxGroup.
	Budget int64
	Group  int
	// Files bounds the open files of the process.
	Files uint64
}

func TestMain(m *testing.M) {
	text := os.Getenv(envPart)
	if text == "" {
		// A child with the race detector sleeps a second before it ends unless it is told not to.
		if os.Getenv("GORACE") == "" {
			_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
		}
		// Each check of the log against its model starts the store twice.
		_ = flag.Set("rapid.checks", strconv.Itoa(rounds(20, 100)))
		flag.Parse()
		// Most tests wait for syncs and processes much more than they work.
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(err)
	}
	switch p.Play {
	case "open":
		p.open()
	case "write":
		p.write()
	case "full":
		p.full()
	case "few":
		p.few()
	}
}

// said is a line a child prints.
type said struct {
	Kind fault.Kind      `json:"kind,omitempty"`
	Agg  string          `json:"agg,omitempty"`
	Ver  uint64          `json:"ver,omitempty"`
	ID   event.CommandID `json:"id,omitempty"`
	Seq  uint64          `json:"seq,omitempty"`
	End  bool            `json:"end,omitempty"`
	// Purged tells of a step of a prune.
	Purged bool  `json:"purged,omitempty"`
	At     int64 `json:"at,omitempty"` // of the monotonic clock, which processes share
}

var sayMu sync.Mutex

// monotonic is the clock since the machine's start, in nanoseconds.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

func say(s said) {
	b, _ := json.Marshal(s)
	sayMu.Lock()
	defer sayMu.Unlock()
	_, _ = os.Stdout.Write(append(b, '\n'))
}

func (p part) options() Options {
	o := Options{Dir: p.Dir, Durability: p.Mode, MaxBytes: p.Budget, Server: event.NewInstanceID(), Faults: &Faults{GroupBytes: p.Group}}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	return o
}

func (p part) open() {
	l, err := Open(context.Background(), p.options())
	say(said{Kind: fault.KindOf(err)})
	if err == nil {
		_ = l.Close()
	}
}

// write appends commits until it is killed, and names each one that was acknowledged.
func (p part) write() {
	o := p.options()
	p.die(o.Faults)
	if p.Prune {
		o.Base = newIndex()
		o.Faults.AfterPurge = func(uint64) error { say(said{Purged: true}); return nil }
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		say(said{Kind: fault.KindOf(err)})
		return
	}
	if p.Writers == 0 {
		p.Writers = 8
	}
	for w := range p.Writers {
		go p.writer(l, w)
	}
	if p.Carry {
		go p.carry(l)
	}
	if p.Prune {
		go p.prunes(l)
	}
	select {}
}

func (p part) writer(l *Log, w int) {
	a := event.SessionAggregate(event.SessionID("writer-" + strconv.Itoa(w)))
	for i := 0; ; i++ {
		events := threeEvents(i)
		if p.Text > 0 {
			events[2] = event.InstructionAccepted{Text: strings.Repeat("x", p.Text)}
		}
		if p.Prune && i%8 == 7 { // its state, so that what lies before may leave
			parts, err := event.SplitState(1, []byte("{}"))
			if err != nil {
				panic(err)
			}
			events = []event.Event{event.SessionCarried{Part: parts[0]}}
		}
		if !sayAppended(l, a, events) {
			return
		}
	}
}

// carry brings states of several parts forward, one aggregate after the other.
func (p part) carry(l *Log) {
	state := make([]byte, 600<<10)
	for i := 0; ; i++ {
		_, _ = rand.Read(state) // cannot be compressed
		parts, err := event.SplitState(1, state)
		if err != nil {
			panic(err)
		}
		a := event.SessionAggregate(event.SessionID("carried-" + strconv.Itoa(i)))
		for _, c := range parts {
			if !sayAppended(l, a, []event.Event{event.SessionCarried{Part: c}}) {
				return
			}
		}
	}
}

// prunes takes all it may out of the log, again and again.
func (p part) prunes(l *Log) {
	for {
		blocks, err := l.Blocks()
		if err != nil {
			say(said{Kind: fault.KindOf(err)})
			return
		}
		err = l.Prune(context.Background(), blocks[len(blocks)-1].First, "age")
		switch fault.KindOf(err) {
		case "", fault.Conflict, fault.Unavailable, fault.InvalidArguments: // carried, or not yet
		default:
			return
		}
		time.Sleep(20 * time.Millisecond) // a look reads the newest block
	}
}

func sayAppended(l *Log, a event.Aggregate, events []event.Event) bool {
	head, err := l.Head(a)
	if err != nil {
		return false
	}
	d := Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(), Events: events}
	r, err := l.Append(context.Background(), d)
	if err != nil {
		say(said{Kind: fault.KindOf(err)})
		return false
	}
	say(said{Agg: a.ID, Ver: r.Commit.Version, ID: d.ID, Seq: r.Seq, At: monotonic()})
	return true
}

// die kills the process at a named point of a commit, as kill -9 would.
func (p part) die(f *Faults) {
	die := func(seq uint64) error {
		if seq >= p.After {
			_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
			select {}
		}
		return nil
	}
	switch p.Die {
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
}

// full writes until the file system takes no more. A limit on the size of a file stands in
// for a full disk: the store's write fails in the same place.
func (p part) full() {
	l, err := Open(context.Background(), p.options())
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
	for i := range 5000 {
		if !sayAppended(l, a, threeEvents(i)) {
			break
		}
	}
	select {
	case <-l.Failed():
		say(said{Kind: fault.KindOf(l.Admit())})
	default:
	}
	_ = l.Close()
	say(said{End: true})
}

// few works with few open files for a while.
func (p part) few() {
	limit := unix.Rlimit{Cur: p.Files, Max: p.Files}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		say(said{Kind: "no_limit"})
		return
	}
	l, err := Open(context.Background(), p.options())
	if err != nil {
		say(said{Kind: fault.KindOf(err)})
		return
	}
	done := make(chan struct{})
	for w := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			a := event.SessionAggregate(event.SessionID("writer-" + strconv.Itoa(w)))
			for i := range rounds(60, 200) {
				if !sayAppended(l, a, threeEvents(i)) {
					return
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
	say(said{Kind: fault.KindOf(l.Close())})
	say(said{End: true})
}

// play runs this test binary in a part and gives what it said.
func play(t *testing.T, p part) []said {
	t.Helper()
	return playUntil(t, p, 0, nil)
}

// playUntil does something after the child has said so many lines, and kills it then.
func playUntil(t *testing.T, p part, lines int, do func()) []said {
	t.Helper()
	return playWhen(t, p, lines, func(said) bool { return true }, do)
}

// silent is how long a child may say nothing.
const silent = 2 * time.Minute

// playWhen counts only some lines.
func playWhen(t *testing.T, p part, lines int, counts func(said) bool, do func()) []said {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// How long a child takes is the disk's affair; one that hangs says nothing more.
	silence := time.AfterFunc(silent, cancel)
	defer silence.Stop()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), envPart+"="+string(text))
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []said
	counted := 0
	for s := bufio.NewScanner(out); s.Scan(); {
		silence.Reset(silent)
		var line said
		if json.Unmarshal(s.Bytes(), &line) != nil || !strings.HasPrefix(s.Text(), "{") {
			continue
		}
		all = append(all, line)
		if !counts(line) {
			continue
		}
		if counted++; lines > 0 && counted == lines {
			if do != nil {
				do()
			}
			_ = cmd.Process.Signal(syscall.SIGKILL)
		}
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("the child hangs, it said %d lines", len(all))
	}
	if lines > 0 && counted < lines {
		t.Fatalf("the child said %d lines and ended: %s", counted, errs)
	}
	return all
}

// acknowledged are the commits that were.
func acknowledged(lines []said) (acked []said) {
	for _, s := range lines {
		if s.ID != "" {
			acked = append(acked, s)
		}
	}
	return acked
}

// checkWhole replays the log, which checks versions and chain, and wants every acknowledged
// commit of three events in it, once.
func checkWhole(t *testing.T, l *Log, acked []said) {
	t.Helper()
	if lost := lostOf(t, l, acked); lost > 0 {
		t.Errorf("%d of %d acknowledged commits are lost", lost, len(acked))
	}
}

func lostOf(t *testing.T, l *Log, acked []said) (lost int) {
	t.Helper()
	found := map[event.CommandID]string{}
	err := l.Replay(context.Background(), Range{}, func(e Entry) error {
		c := e.Commit
		if _, twice := found[c.ID]; twice {
			return fmt.Errorf("command %s stands twice", c.ID)
		}
		if _, carried := event.CarriedIn(c); c.Aggregate.Domain == event.DomainSession && !carried && len(c.Events) != 3 {
			return fmt.Errorf("commit %d has %d of its 3 events", e.Seq, len(c.Events))
		}
		found[c.ID] = c.Aggregate.ID + " " + strconv.FormatUint(c.Version, 10)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range acked {
		if a.Seq > 0 && a.Seq < l.Status().FirstSeq {
			continue // pruned
		}
		if a.Kind != "" {
			t.Errorf("a writer was refused: %s", a.Kind)
		} else if found[a.ID] != a.Agg+" "+strconv.FormatUint(a.Ver, 10) {
			lost++
		}
	}
	return lost
}
