package window

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
)

var (
	alpha = event.ProjectRef{Client: "local", Project: "alpha-00000001"}
	beta  = event.ProjectRef{Client: "local", Project: "beta-00000002"}
)

func called(who string, w event.WindowID, p event.ProjectRef, second int, tool string) Call {
	at := begin.Add(time.Duration(second) * time.Second)
	return Call{Principal: who, Window: w, Project: p, Tool: tool, Started: at, Answered: at.Add(100 * time.Millisecond), Meaningful: true}
}

func gapsOf(l Loop) map[string]int64 {
	out := map[string]int64{}
	for _, t := range l.Calls {
		if out[t.Tool] = -1; t.GapMS != nil {
			out[t.Tool] = *t.GapMS
		}
	}
	return out
}

// Calls pair where window and principal are the same, over Projects; a hidden Project's calls
// are neither shown nor passed over.
//
// Covers: WIN-22, WIN-23, WIN-25
func TestALoopPairsCallsOfOneWindow(t *testing.T) {
	bob := strings.Repeat("b", 64)
	status := called(alice, w1, event.ProjectRef{}, 3, "status")
	status.Meaningful = false
	calls := []Call{called(alice, w1, alpha, 0, "a"), called(alice, w2, alpha, 1, "w2"), called(bob, w1, alpha, 2, "bob"), status,
		called(alice, w1, beta, 4, "b"), called(alice, w1, alpha, 7, "c"), called(alice, w1, alpha, 9, "d")}
	all := func(event.ProjectRef) bool { return true }
	if d := cmp.Diff(map[string]int64{"a": 3900, "b": 2900, "c": 1900, "d": -1}, gapsOf(NewLoop(calls, alice, w1, all))); d != "" {
		t.Error(d)
	}
	for what, l := range map[string]Loop{"window": NewLoop(calls, alice, w2, all), "principal": NewLoop(calls, bob, w1, all)} {
		if len(l.Calls) != 1 || l.Calls[0].GapMS != nil {
			t.Errorf("another %s pairs: %+v", what, l.Calls)
		}
	}
	hidden := NewLoop(calls, alice, w1, func(p event.ProjectRef) bool { return p == alpha })
	if d := cmp.Diff(map[string]int64{"a": -1, "c": 1900, "d": -1}, gapsOf(hidden)); d != "" {
		t.Error(d)
	}
	if l := NewLoop(calls, alice, "", all); l.Continuity != LoopUnavailable || len(l.Calls) != 0 {
		t.Errorf("%+v", l)
	}
}
