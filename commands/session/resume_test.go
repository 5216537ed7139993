package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Whatever is given as a selector, a resume comes to the Session that it exactly names, or is
// refused with nothing written: never to another, however recent, and never to a new one.
//
// Covers: SES-11, SES-54, STA-05, NEG-06
func TestAResumeNeverLandsElsewhere(t *testing.T) {
	e := calltest.New(t, nil)
	e.Limit = 2
	e.Reopen()
	names := map[string]event.SessionID{} // of the owner, those that may be resumed
	var ids []string
	for i := range 9 {
		s := start(e, args{"project": alpha})
		ids = append(ids, string(s.SessionID), s.SessionRef)
		if i%2 == 0 {
			calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": s.SessionID})
			continue
		}
		names[string(s.SessionID)], names[s.SessionRef] = s.SessionID, s.SessionID
	}
	other := as[session.WorkOut](e, calltest.Someone("b"), &session.WorkOnProject, args{"project": alpha, "instruction": "x"})
	ids = append(ids, string(other.SessionID), other.SessionRef, "~s10", "latest", "current", "", "~s", "~p1", alpha, "null", "wc_sess_")
	digits := "0123456789abcdefs~_ \u200b\u202eABCDEF"
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		selector := rapid.SampledFrom(ids).Draw(t, "selector")
		switch rapid.IntRange(0, 4).Draw(t, "mistake") {
		case 1: // one character is another
			if r := []rune(selector); len(r) > 0 {
				r[rapid.IntRange(0, len(r)-1).Draw(t, "at")] = rapid.SampledFrom([]rune(digits)).Draw(t, "to")
				selector = string(r)
			}
		case 2: // one too many
			at := rapid.IntRange(0, len(selector)).Draw(t, "at")
			selector = selector[:at] + string(rapid.SampledFrom([]rune(digits)).Draw(t, "more")) + selector[at:]
		case 3: // cut off
			selector = selector[:rapid.IntRange(0, len(selector)).Draw(t, "length")]
		case 4:
			selector = rapid.StringN(1, 40, 128).Draw(t, "text")
		}
		if selector == "" {
			return // names nothing: the schema does not let it through
		}
		n++
		text := fmt.Sprintf("instruction %d", n)
		before, totals := e.Seq(), e.Store.Totals()
		raw, err := json.Marshal(args{"session_id": selector, "instruction": text})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := e.Kernel.Call(context.Background(), call.Request{Spec: &session.WorkOnProject, Args: raw, Principal: calltest.Owner(), Transport: "mcp"})
		want := names[selector]
		if want == "" {
			switch k := fault.KindOf(err); k {
			case fault.UnknownSessionID, fault.UnknownSessionRef, fault.SessionExpired, fault.SessionClosed, fault.SessionAuthorityDenied:
			default:
				t.Fatalf("%q: %v", selector, err)
			}
			if e.Seq() != before {
				t.Fatalf("%q: a refusal was written", selector)
			}
			return
		}
		var out session.WorkOut
		if err != nil || json.Unmarshal(resp.Output, &out) != nil || out.SessionID != want || out.Continuation != session.Resumed {
			t.Fatalf("%q came to %+v (%v), want %s", selector, out, err, want)
		}
		events := e.Events(want)
		if got, ok := events[len(events)-1].(event.InstructionAccepted); !ok || got.Text != text || e.Seq() != before+1 {
			t.Fatalf("%q: the newest event is %+v", selector, events[len(events)-1])
		}
		if after := e.Store.Totals(); after.Sessions != totals.Sessions {
			t.Fatalf("%q made a Session", selector)
		}
	})
}

// Two windows resume one Session, by id and by ref, and write at once: both go on, the versions
// are contiguous and no event is lost.
func TestTwoWindowsOfOneSession(t *testing.T) {
	e := calltest.New(t, nil)
	s := start(e, args{"project": alpha})
	const each = 12
	var wg sync.WaitGroup
	for window, selector := range []any{s.SessionID, s.SessionRef} {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("window %d, step %d", window, i)
				if out := start(e, args{"session_id": selector, "instruction": text}); out.SessionID != s.SessionID {
					t.Errorf("%v came to %s", selector, out.SessionID)
				}
				if _, err := e.Call(runs, args{"project": alpha, "session_id": selector}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	said, calls := map[string]int{}, map[event.CallID]int{}
	for i, c := range e.Commits(s.SessionID) {
		if c.Version != uint64(i)+1 {
			t.Fatalf("version %d in place %d", c.Version, i)
		}
		for _, x := range c.Events {
			switch x := x.(type) {
			case event.InstructionAccepted:
				said[x.Text]++
			case event.ToolCallStarted:
				calls[x.Call]++
			case event.ToolCallFinished:
				calls[x.Call]++
			default: // of the start
			}
		}
	}
	if len(said) != 2*each+1 || len(calls) != 2*each {
		t.Errorf("%d instructions, %d calls", len(said), len(calls))
	}
	for id, n := range calls {
		if n != 2 {
			t.Errorf("%s has %d events", id, n)
		}
	}
	for text, n := range said {
		if n != 1 {
			t.Errorf("%q was said %d times", text, n)
		}
	}
}

// A stored fingerprint that is missing or malformed matches nobody, whoever asks and whatever
// is presented, and nothing repairs it.
//
// Covers: AUTH-06, AUTH-18
func TestAMalformedOwnerMatchesNobody(t *testing.T) {
	e := calltest.New(t, nil)
	for _, stored := range []string{"", "a", strings.Repeat("A", 64), strings.Repeat("a", 63), strings.Repeat("a", 64) + " ", strings.Repeat("g", 64)} {
		id := event.NewSessionID()
		e.Append(id, event.SessionCreated{Nonce: event.NewNonce(), Authority: stored, Principal: strings.Repeat("a", 64), Project: calltest.Alpha, Mode: event.ModeNormal})
		presented := calltest.Owner()
		presented.Actor.Authority = stored
		for _, spec := range []*call.Spec{&session.ReadHandoff, &session.WorkOnProject, &session.CloseSession} {
			e.Refused(calltest.Owner(), spec, args{"session_id": id, "instruction": "x"}, fault.SessionAuthorityDenied)
			e.Refused(presented, spec, args{"session_id": id, "instruction": "x"}, fault.AuthorityUnavailable)
		}
		if core, _ := e.Store.Core(id); core.Authority != stored || core.Version != 1 {
			t.Errorf("%q was made %q", stored, core.Authority)
		}
	}
	if page := list(e, calltest.Owner(), args{"project": alpha}); page.Total != 0 {
		t.Errorf("%+v", page)
	}
	nobody := calltest.Owner()
	nobody.Actor.Principal = ""
	e.Refused(nobody, &session.StartSession, args{}, fault.OwnerUnavailable)
	if n := e.Store.Totals().Sessions; n != 6 {
		t.Errorf("%d Sessions", n)
	}
}
