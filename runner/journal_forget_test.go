package runner

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// A shortening that fails leaves the journal as it was, and is not tried again at every step.
func TestAShorteningThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := reopen(t, dir)
	j.keep = 5
	var failed, done int
	j.onShorten = func(err error) {
		if err != nil {
			failed++
		} else {
			done++
		}
	}
	draft := filepath.Join(dir, "journal", draftName)
	if err := os.Mkdir(draft, 0o700); err != nil { // nothing can be written there
		t.Fatal(err)
	}
	generation := j.life.Generation
	for i := range 100 {
		mustLead(t, j, execID(i), len(wholeLife))
	}
	if _, known := j.find(execID(0)); failed != 1 || !known || j.life.Generation != generation {
		t.Errorf("tried %d times; the first end is known: %v", failed, known)
	}
	if err := os.Remove(draft); err != nil {
		t.Fatal(err)
	}
	for i := 100; done == 0 && i < 20_000; i++ {
		mustLead(t, j, execID(i), len(wholeLife))
	}
	if failed != 1 || done != 1 || len(j.entries) != 5 {
		t.Errorf("failed %d times, done %d times, %d entries", failed, done, len(j.entries))
	}
}

// The server asks about an id that was forgotten: the answer is absence in another generation
// than the one in force at the offer, which the server is told of at once.
func TestAForgottenIDProvesNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.journal.keep = 1
	hellos := make(chan string, 100)
	g.mu.Lock()
	g.announce = func() { hellos <- g.hello().Generation }
	g.mu.Unlock()
	offered := g.hello().Generation
	var first event.ExecutionID
	for range 3 {
		o := g.make(wire.OpProcess, wire.ProcessIn{Executable: "true"})
		g.do(o)
		if first == "" {
			first = o.ID
		}
		for deadline := time.Now().Add(10 * time.Second); g.journal.owing() > 0 && time.Now().Before(deadline); {
			time.Sleep(2 * time.Millisecond)
		}
	}
	select {
	case told := <-hellos:
		if told == offered || told != g.journal.current().Generation {
			t.Errorf("told %q", told)
		}
	case <-time.After(10 * time.Second):
		t.Error("the server was told nothing")
	}
	if q := g.query(wire.Query{ID: first}); q.State != wire.JAbsent || q.Generation == offered || q.Generation == "" {
		t.Errorf("asked for: %+v", q)
	}
}

// Ends that the server does not acknowledge are all kept, so beyond their bound nothing new is
// taken; the next acknowledgement makes room.
func TestUnacknowledgedEndsAreBounded(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for i := range maxUnsettled {
		mustLead(t, g.journal, execID(i), 4)
	}
	reply := g.offer(g.link, g.make(wire.OpShell, appendMark("marker")))
	if reply.Accepted || fault.KindOf(reply.Fault) != fault.TooManyCalls || reply.Fault.Next == "" {
		t.Errorf("%+v", reply)
	}
	if n := len(g.hello().Jobs); n != maxUnsettled {
		t.Errorf("%d are told of", n)
	}
	if err := g.journal.step(record{ID: execID(7), State: wire.JSettled}, false); err != nil {
		t.Fatal(err)
	}
	g.do(g.make(wire.OpShell, appendMark("marker")))
	if g.marks("marker") != 1 {
		t.Error("no place became free")
	}
}
