package runner

import (
	"os"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// keyed is an offer under a key; payload stands for what is asked for.
func (g *rig) keyed(key, payload string, in wire.ProcessIn) wire.Offer {
	o := g.make(wire.OpShell, in)
	o.Key, o.Payload = key, payload
	o.Digest = wire.Digest([]byte("k"), o)
	return o
}

// A key starts one execution, however often, at once or in another life it is offered; another
// payload under it starts nothing; and what never started gives it free.
//
// Covers: EXE-38
func TestAKeyStartsOneExecution(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	accepted, firsts := event.ExecutionID(""), map[event.ExecutionID]int{}
	var repeats []event.ExecutionID
	for range 8 {
		o := g.keyed("k1", "p1", appendMark("marker"))
		group.Go(func() {
			reply := g.offer(g.link, o)
			mu.Lock()
			defer mu.Unlock()
			if reply.Accepted {
				accepted = o.ID
				return
			}
			firsts[reply.First]++
			repeats = append(repeats, o.ID)
		})
	}
	group.Wait()
	if first := g.end(); first.ID != accepted || len(firsts) != 1 || firsts[accepted] != 7 {
		t.Fatalf("%s was taken and %s ended; the others were answered with %v", accepted, first.ID, firsts)
	}
	for _, id := range repeats {
		if s := g.state(id); s != wire.JRefused {
			t.Errorf("the journal says %s of a repeat", s)
		}
	}
	if reply := g.offer(g.link, g.keyed("k1", "p2", appendMark("other"))); fault.KindOf(reply.Fault) != fault.IdempotencyConflict || reply.First != "" {
		t.Errorf("another payload is answered %+v", reply)
	}
	if reply := g.offer(g.link, g.keyed("k2", "p2", wire.ProcessIn{Command: "true", Shell: "sh", Cwd: "nowhere"})); !reply.Accepted {
		t.Fatalf("%+v", reply)
	}
	if r := g.end(); r.State != wire.JStartFailed {
		t.Fatalf("%+v", r)
	}
	again := g.keyed("k2", "p3", appendMark("second"))
	if r := g.do(again); r.State != wire.JTerminal {
		t.Errorf("a key whose execution did not start is not free: %+v", r)
	}
	root := g.p.Path
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g = openRig(t, g.dir, root)
	lost := g.keyed("k1", "p1", appendMark("marker"))
	for range 2 { // the answer may get lost
		if reply := g.offer(g.link, lost); reply.First != accepted || reply.Accepted || reply.Fault != nil {
			t.Errorf("the next life answers %+v", reply)
		}
	}
	if reply := g.offer(g.link, g.keyed("k2", "p2", appendMark("other"))); fault.KindOf(reply.Fault) != fault.IdempotencyConflict {
		t.Errorf("the next life answers another payload %+v", reply)
	}
	if g.marks("marker") != 1 || g.marks("second") != 1 || g.marks("other") != 0 {
		t.Errorf("it ran %d, %d and %d times", g.marks("marker"), g.marks("second"), g.marks("other"))
	}
}

// Ends with a key outlive the others in the journal, up to their own number and age.
func TestAJournalKeepsKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := reopen(t, dir)
	now := time.Now()
	j.now = func() time.Time { return now }
	j.keep, j.keepKeys = 3, 8
	put := func(i int, key string) {
		t.Helper()
		for _, s := range wholeLife {
			r := record{ID: execID(i), State: s, Digest: "d"}
			if s == wire.JAccepted {
				r.Key, r.Payload = key, "p"
			}
			if err := j.step(r, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(1, "old")
	now = now.Add(keptKeyAge + time.Hour)
	put(2, "young")
	for i := range 30 {
		put(100+i, "")
	}
	if _, _, there := j.first("young"); !there {
		t.Error("a young key left with the ends without one")
	}
	if _, _, there := j.first("old"); there {
		t.Error("a key stays after its time")
	}
	for i := range 30 {
		put(200+i, string(rune('a'+i)))
	}
	if n := len(j.keys); n < j.keepKeys || n > j.keepKeys+j.keepKeys/4+1 {
		t.Errorf("%d keys are kept", n)
	}
	_ = j.close()
	again := reopen(t, dir)
	if id, e, there := again.first(string(rune('a' + 29))); !there || id != execID(229) || e.payload != "p" {
		t.Errorf("another life finds %s %+v", id, e)
	}
}

// What an old copy of a journal says was accepted may have been started since: nobody is told
// that it never was.
//
// Covers: EXE-38
func TestACopiedJournalDoubtsWhatItHadAccepted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := reopen(t, dir)
	mustLead(t, j, execID(1), 1)
	b, err := os.ReadFile(logFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	_ = j.close()
	if err := os.WriteFile(logFile(dir)+".copy", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(logFile(dir)+".copy", logFile(dir)); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, dir)
	e, _ := again.find(execID(1))
	if e.state != wire.JLost {
		t.Errorf("it is %s", e.state)
	}
}
