package session

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

type held struct {
	Core     Core
	Observed uint64
	Items    []plainItem
	Board    plainBoard
	Seq      uint64
	Hash     string
}

// plainItem is an Item with its event read.
type plainItem struct {
	Seq, Version uint64
	Index        int
	Kind         Kind
	At           time.Time
	Inv          event.InvocationID
	Role         event.Role
	Event        event.SessionEvent
}

func plain(i Item) plainItem {
	return plainItem{i.Seq, i.Version, i.Index, i.Kind, i.At, i.Inv, i.Role, i.Event()}
}

// stateOf copies what a View holds, so that a later change of it would show.
func stateOf(v View) held {
	var items []plainItem
	for _, it := range v.Tail.Items() {
		items = append(items, plain(it))
	}
	return held{v.Core, v.Tail.Observed, items, plainly(v.Board), v.Seq, v.Hash}
}

// plainBoard is a Board with its messages copied.
type plainBoard struct {
	Revision, Low uint64
	Unread        int
	Messages      []Message
}

func plainly(b Board) plainBoard {
	p := plainBoard{Revision: b.Revision, Low: b.Low, Unread: b.unread}
	for _, m := range b.Messages() {
		p.Messages = append(p.Messages, *m)
	}
	return p
}

func fold(v View, commits []Stored) View {
	for _, c := range commits {
		v = v.Apply(c.Seq, c.Hash, c.Commit)
	}
	return v
}

// A View taken anywhere plus the commits after it is the fold from the first event, no matter
// how often and in which order its branches go on; what a reader holds never changes.
func TestSnapshotPlusTailIsTheFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t, 40)
		whole := stateOf(fold(View{}, h.commits))
		cut := rapid.IntRange(0, len(h.commits)).Draw(t, "cut")
		snapshot := fold(View{}, h.commits[:cut])
		before := stateOf(snapshot)
		for range 2 {
			if diff := cmp.Diff(whole, stateOf(fold(snapshot, h.commits[cut:]))); diff != "" {
				t.Fatalf("snapshot + tail differs from the whole fold:\n%s", diff)
			}
		}
		if diff := cmp.Diff(before, stateOf(snapshot)); diff != "" {
			t.Fatalf("a held View changed:\n%s", diff)
		}
		if diff := cmp.Diff(whole, stateOf(fold(snapshot, h.commits))); diff != "" {
			t.Fatalf("commits already folded changed the state:\n%s", diff)
		}
	})
}

// The fold of the stored bytes is the fold of what was committed, twice the same to the byte.
//
// Covers: EVT-29, CON-01
func TestFoldOfStoredBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t, 15)
		decoded := make([]Stored, len(h.commits))
		for i, s := range h.commits {
			body, err := s.Commit.Encode()
			if err != nil {
				t.Fatal(err)
			}
			c, err := event.Decode(body)
			if err != nil {
				t.Fatal(err)
			}
			decoded[i] = Stored{s.Seq, s.Hash, c}
		}
		once, twice := fold(View{}, decoded), fold(View{}, decoded)
		if diff := cmp.Diff(stateOf(once), stateOf(twice)); diff != "" {
			t.Fatal(diff)
		}
		if once.Core.Version != uint64(len(h.commits)) || once.Core.Observed != h.view().Core.Observed {
			t.Fatalf("version %d, %d observed", once.Core.Version, once.Core.Observed)
		}
		a, b := views(once), views(twice)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("views differ between two replays:\n%s", diff)
		}
	})
}

// views renders everything that is made of a View, byte by byte.
func views(v View) []string {
	s := all()
	out := []string{}
	for _, x := range []any{NewSummary(v, ptr(200)), briefOf(v, s), NewHandoff(v, s, true, ptr(100)), NewFeedback(v, s, 100),
		NewFinish(v, s, FinishOptions{IncludeDiff: true, IncludeHygiene: true, IncludeHandoff: true}), NewPage([]Core{v.Core}, 0, nil)} {
		b, err := json.Marshal(x)
		if err != nil {
			panic(err)
		}
		out = append(out, string(b))
	}
	return out
}

// Two goroutines that go on from one Tail never write into each other's events.
func TestTailBranchesAreSeparate(t *testing.T) {
	h := began("branch")
	for range 5 {
		h.read("a.go")
	}
	base := h.view()
	var wg sync.WaitGroup
	got := make([]View, 8)
	for i := range got {
		wg.Add(1)
		go func() {
			defer wg.Done()
			v := base
			for n := range 50 {
				v = v.Apply(uint64(1000+n), "h", event.Commit{Version: v.Core.Version + 1, At: h.at,
					Aggregate: event.SessionAggregate(testID),
					Events:    []event.Event{event.InstructionAccepted{Text: string(rune('a' + i))}}})
			}
			got[i] = v
		}()
	}
	wg.Wait()
	for i, v := range got {
		items := v.Tail.Items()
		for _, it := range items[len(items)-50:] {
			if text := it.Event().(event.InstructionAccepted).Text; text != string(rune('a'+i)) {
				t.Fatalf("branch %d holds an event of branch %q", i, text)
			}
		}
	}
}

// Covers: SES-21, SES-23
func TestLifecycle(t *testing.T) {
	h := began("close me")
	if got := h.view().Core.Lifecycle; got != Active {
		t.Fatalf("a new Session is %q", got)
	}
	h.commit(event.SessionClosed{})
	closed := h.view()
	if closed.Core.Lifecycle != Closed {
		t.Fatalf("after close: %q", closed.Core.Lifecycle)
	}
	// No stored event reopens it, not even a second creation.
	for _, e := range []event.Event{event.InstructionAccepted{Text: "x", Mode: event.ModeNormal}, event.ContextUpdated{},
		event.ToolCallStarted{Call: "c"}, event.ToolCallFinished{Call: "c"}, event.ExecutionFinished{}, event.ExecutionReconciled{},
		created("again")} {
		h.commit(e)
		if got := h.view().Core.Lifecycle; got != Closed {
			t.Fatalf("%T made it %q", e, got)
		}
	}
	n := 0
	for _, it := range h.view().Tail.Items() {
		if it.Kind == KindSessionClosed {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d session_closed events", n)
	}
	if b := briefOf(h.view(), all()); b.Progress.State != StateClosed || b.Session.Lifecycle != Closed {
		t.Fatalf("brief of a closed Session: %s %s", b.Progress.State, b.Session.Lifecycle)
	}
}

func TestOpenCallsJobsAndUnknown(t *testing.T) {
	h := began("jobs")
	id := h.callID()
	h.commit(event.ToolCallStarted{Call: id, Tool: "run_process", Execution: execution(90)})
	if c := h.view().Core; len(c.Open) != 1 || c.Open[id].Server != testServer || c.Open[id].Started.Execution.ID != execution(90).ID {
		t.Fatalf("open calls: %+v", c.Open)
	}
	h.commit(event.ToolCallFinished{Call: id, Tool: "run_process", Execution: execution(90).ID, Status: event.StatusFailed,
		Effect: event.Effect{State: event.OutcomeUnknown}})
	c := h.view().Core
	if len(c.Open) != 0 || len(c.Unknown) != 1 || c.Unknown[0].Execution != execution(90).ID {
		t.Fatalf("open %v, unknown %v", c.Open, c.Unknown)
	}
	h.commit(event.ExecutionReconciled{Execution: execution(90).ID, Effect: event.Effect{State: event.Completed}})
	if c := h.view().Core; len(c.Unknown) != 0 {
		t.Fatalf("proof came, still unknown: %v", c.Unknown)
	}
	x := h.job(91, testServer)
	if c := h.view().Core; len(c.Jobs) != 1 || c.Jobs[x].Execution.Digest != "digest" {
		t.Fatalf("jobs: %+v", c.Jobs)
	}
	h.commit(event.ExecutionFinished{Execution: x, Tool: "run_process", Effect: event.Effect{State: event.Completed, StateChanged: true}})
	if c := h.view().Core; len(c.Jobs) != 0 || !c.Edited || c.ChangedVersion != c.Version {
		t.Fatalf("after the Job's end: %+v", c)
	}
	for n := range MaxUnknown + 3 {
		h.commit(event.ToolCallFinished{Call: h.callID(), Tool: "run_process", Execution: execution(100 + n).ID,
			Effect: event.Effect{State: event.OutcomeUnknown}})
	}
	c = h.view().Core
	if len(c.Unknown) != MaxUnknown || c.UnknownDropped != 3 || c.Unknown[MaxUnknown-1].Execution != execution(100+MaxUnknown+2).ID {
		t.Fatalf("%d unknown, %d dropped", len(c.Unknown), c.UnknownDropped)
	}
}
