package session

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// inParts gives the state of a View in so many parts, however small it is.
func inParts(t rapid.TB, v View, n int) []event.CarriedPart {
	t.Helper()
	form, state := Carry(v)
	parts, err := event.SplitState(form, state)
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) > 1 {
		return parts
	}
	packed, err := base64.StdEncoding.DecodeString(parts[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]event.CarriedPart, n)
	for i := range n {
		chunk := packed[len(packed)*i/n : len(packed)*(i+1)/n]
		out[i] = event.CarriedPart{State: form, Part: i + 1, Parts: n, Data: base64.StdEncoding.EncodeToString(chunk)}
	}
	out[n-1].Hash = parts[0].Hash
	return out
}

// carried is a history in which carries were begun at drawn places, some of them cut off by
// another commit, and where the whole ones begin and end.
type carried struct {
	commits    []Stored
	first, end []int
}

func drawCarried(tb testing.TB, t *rapid.T, most int) carried {
	from := logged(tb, drawHistory(t, most).commits)
	h := newHistory()
	var out carried
	var v View
	add := func(c event.Commit) {
		h.at = c.At
		s := h.commitAs(c.Invocation, c.Events...)
		s.Commit.Server, s.Commit.Actor = c.Server, c.Actor
		h.commits[len(h.commits)-1] = s
		v = v.Apply(s.Seq, s.Hash, s.Commit)
	}
	for _, s := range from {
		add(s.Commit)
		if rapid.IntRange(0, 4).Draw(t, "carry") > 0 {
			continue
		}
		parts := inParts(t, v, rapid.IntRange(1, 5).Draw(t, "parts"))
		whole := rapid.IntRange(0, 3).Draw(t, "whole") > 0
		first := len(h.commits)
		for _, p := range parts {
			if !whole && rapid.Bool().Draw(t, "cut off") {
				break
			}
			add(event.Commit{Events: []event.Event{event.SessionCarried{Part: p}}, At: h.at, Server: testServer})
			if p.Part == p.Parts {
				out.first, out.end = append(out.first, first), append(out.end, len(h.commits))
			}
		}
	}
	out.commits = h.commits
	return out
}

// A Session whose first commits have left the log is, from the last part of its carried state
// on, equal field by field to the fold from its first event, whatever came between and after.
//
// Covers: RES-19
func TestCarriedStatePlusTailIsTheFold(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		c := drawCarried(tb, t, 16)
		if len(c.first) == 0 {
			return
		}
		which := rapid.IntRange(0, len(c.first)-1).Draw(t, "which")
		cut := rapid.IntRange(1, c.first[which]).Draw(t, "cut")
		whole, pruned := fold(View{}, c.commits[:cut]), View{}
		restored := false
		for i, s := range c.commits[cut:] {
			whole, pruned = whole.Apply(s.Seq, s.Hash, s.Commit), pruned.Apply(s.Seq, s.Hash, s.Commit)
			// A reader that keeps the View over a restart keeps what was gathered.
			pruned = pruned.WithGathered(event.GatherOf(pruned.Gathered().Parts()))
			look := i == len(c.commits)-cut-1 // comparing costs more than folding
			for n := range c.first {
				if c.first[n] >= cut && c.end[n] == cut+i+1 {
					look, restored = true, true
				}
			}
			if !restored {
				if pruned.Core.Exists() || !pruned.Rootless() || pruned.Core.Version != s.Commit.Version || pruned.Seq != s.Seq {
					t.Fatalf("at version %d of a log that begins at %d: %+v", s.Commit.Version, cut+1, pruned.Core)
				}
				continue
			}
			if !look {
				continue
			}
			if diff := cmp.Diff(stateOf(whole), stateOf(pruned), empty); diff != "" {
				t.Fatalf("at version %d of a log that begins at %d:\n%s", s.Commit.Version, cut+1, diff)
			}
			if !pruned.Gathered().Empty() {
				t.Fatal("a View with its state still gathers")
			}
		}
		if !restored {
			t.Fatal("a carry that was whole did not count")
		}
		if rapid.IntRange(0, 9).Draw(t, "read") > 0 {
			return
		}
		for i, body := range views(whole) {
			if again := views(pruned)[i]; body != again {
				t.Fatalf("a reader sees a difference:\n%s\n%s", body, again)
			}
		}
	})
}

// Carried commits change nothing that a reader of the Session sees: neither when it was
// updated, nor how much was observed, nor the tail.
//
// Covers: EVT-06
func TestCarriedCommitsAreNoActivity(t *testing.T) {
	h := began("carry me")
	h.edit("a.go")
	h.test(true, 0)
	before := h.view()
	for _, p := range inParts(t, before, 3) {
		h.commit(event.SessionCarried{Part: p})
	}
	after := h.view()
	if !after.Core.UpdatedAt.Equal(before.Core.UpdatedAt) || after.Core.Observed != before.Core.Observed {
		t.Fatalf("updated %v, observed %d after a carry; %v, %d before", after.Core.UpdatedAt, after.Core.Observed,
			before.Core.UpdatedAt, before.Core.Observed)
	}
	want := stateOf(before)
	want.Core.Version, want.Seq, want.Hash = after.Core.Version, after.Seq, after.Hash
	if diff := cmp.Diff(want, stateOf(after)); diff != "" {
		t.Fatal(diff)
	}
}

// State of another Session, of an older moment, or of a form that this program does not know
// makes no Session.
func TestForeignCarriedStateMakesNoSession(t *testing.T) {
	h := began("mine")
	h.edit("a.go")
	older := h.view()
	h.edit("b.go")
	now := h.view()
	other := now
	other.Core.ID = "wc_sess_00000000000000000000000000000099"
	for name, parts := range map[string][]event.CarriedPart{
		"another Session": inParts(t, other, 2), "an older moment": inParts(t, older, 2), "no state": inParts(t, View{}, 2),
	} {
		checkNone(t, name, now, parts)
	}
	unknown := inParts(t, now, 2)
	for i := range unknown {
		unknown[i].State = CarriedForm + 1
	}
	checkNone(t, "another form", now, unknown)
}

func checkNone(t *testing.T, name string, at View, parts []event.CarriedPart) {
	t.Helper()
	var v View
	for i, p := range parts {
		v = v.Apply(100+uint64(i), "h", event.Commit{Version: at.Core.Version + 1 + uint64(i), Aggregate: event.SessionAggregate(testID),
			Events: []event.Event{event.SessionCarried{Part: p}}})
	}
	if v.Core.Exists() || !v.Rootless() {
		t.Errorf("%s was taken: %+v", name, v.Core)
	}
}

var writeCarried = flag.Bool("write-carried", false, "write the golden of a new CarriedForm")

// State that some log carries is read for ever: a form has its golden, and none is changed.
//
// Covers: RES-01
func TestCarriedFormsStayReadable(t *testing.T) {
	h := began("golden")
	h.edit("a.go", "b.go")
	h.test(false, 2)
	h.job(7, testServer)
	h.commit(event.ToolCallStarted{Call: h.callID(), Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp", Execution: execution(8)})
	readable(t, 1, h) // before there were boards
	note := post(3, event.MessageNote)
	note.RequiresAck, note.Tags, note.Key, note.Payload = true, []string{"one", "two"}, "key", "payload"
	h.commit(post(1, event.MessageTodo), post(2, event.MessageNote), note)
	h.commit(completion(1, 4, "k"), event.MessagesAcknowledged{Messages: []event.MessageID{note.Message}})
	h.commit(event.MessageResolved{Message: note.Message, Resolution: "read"})
	for n := range MaxMessages - 2 {
		h.commit(post(10+n, event.MessageNote))
	}
	readable(t, 2, h)
}

func readable(t *testing.T, form int, h *history) {
	t.Helper()
	v := fold(View{}, logged(t, h.commits))
	file := fmt.Sprintf("testdata/carried.%d.json", form)
	if _, err := os.Stat(file); err != nil && *writeCarried && form == CarriedForm {
		if err := os.WriteFile(file, EncodeView(v), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := decodeCarried(event.CarriedState{Form: form, State: golden})
	if !ok {
		t.Fatalf("carried state of form %d is not read any more: logs hold it, and nothing else is left of it there", form)
	}
	if diff := cmp.Diff(stateOf(v), stateOf(got), empty); diff != "" {
		t.Fatalf("carried state of form %d means something else now:\n%s", form, diff)
	}
	if now, state := Carry(got); now == form && !bytes.Equal(state, golden) {
		t.Fatalf("form %d is written otherwise now: take the next number", form)
	}
	if _, ok := decodeCarried(event.CarriedState{Form: form + 1, State: golden}); ok {
		t.Fatalf("carried state of form %d was read as of the next one", form)
	}
}

func TestOverflowedTellsOfEventsThatLeftATail(t *testing.T) {
	h := began("long")
	s := NewStore()
	feed := func() {
		for _, c := range h.commits {
			s.Apply(c.Seq, c.Hash, c.Commit)
		}
	}
	for h.view().Core.Observed+2 <= MaxTail {
		for range 100 {
			h.commit(event.ContextUpdated{}, event.ContextUpdated{})
			if len(h.commits)*2 >= MaxTail {
				break
			}
		}
	}
	feed()
	if over, err := s.Overflowed(time.Time{}); over || err != nil {
		t.Fatalf("%d events observed: %v %v", h.view().Core.Observed, over, err)
	}
	h.commit(event.ContextUpdated{}, event.ContextUpdated{})
	feed()
	if over, err := s.Overflowed(time.Time{}); !over || err != nil {
		t.Fatalf("%d events observed: %v %v", h.view().Core.Observed, over, err)
	}
	if over, err := s.Overflowed(h.at); over || err != nil {
		t.Fatalf("nothing left after the last one: %v %v", over, err)
	}
}
