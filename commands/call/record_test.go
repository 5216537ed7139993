package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Covers: EVT-17
func TestBoundInput(t *testing.T) {
	long := strings.Repeat("字", 300)
	paths := []string{"a", "/etc/passwd", "../up", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	got := call.BoundInput(event.Input{Executable: long, Purpose: "Authorization: Bearer abcdefghijklmnop123456", Cwd: "/root",
		Paths: paths, Packages: strings.Split(strings.Repeat("p ", 20), " "), Target: "ghp_0123456789abcdefghijABCDEFGHIJ012345"})
	if n := utf8.RuneCountInString(got.Executable); n > call.MaxInputString || !utf8.ValidString(got.Executable) {
		t.Errorf("a string of %d characters was kept", n)
	}
	if len(got.Paths) != call.MaxInputItems || got.Paths[0] != "a" || got.PathCount != len(paths) || len(got.Packages) > call.MaxInputItems {
		t.Errorf("paths %q of %d, %d packages", got.Paths, got.PathCount, len(got.Packages))
	}
	if got.Cwd != "" {
		t.Errorf("an absolute directory was kept: %q", got.Cwd)
	}
	raw, _ := json.Marshal(got)
	for _, secret := range []string{"abcdefghijklmnop123456", "ghp_0123", "/etc", ".."} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%q was kept in %s", secret, raw)
		}
	}
}

// The answer to a call whose end could not be recorded says what was done and that the
// evidence is missing; from then on nothing new starts.
func TestAnUnrecordedEndIsSaid(t *testing.T) {
	var broken bool
	faults := &eventlog.Faults{AfterSync: func(uint64) error {
		if broken {
			return errors.New("injected")
		}
		return nil
	}}
	e := calltest.New(t, faults)
	id := work(e, calltest.Alpha, "")
	spec := *reads
	broken = true
	_, err := e.Call(&spec, in{Project: calltest.Alpha.String(), SessionID: string(id)})
	if f := fault.As(err); f == nil || f.Kind != fault.PersistenceUncertain || !strings.Contains(f.Message, "could not be recorded") {
		t.Fatalf("%v", err)
	}
	starts := len(e.Fleet.Starts())
	if _, err := e.Call(runs, in{Project: calltest.Alpha.String(), SessionID: string(id)}); fault.KindOf(err) != fault.PersistenceUncertain {
		t.Errorf("a new effect after an uncertain log: %v", err)
	}
	if len(e.Fleet.Starts()) != starts {
		t.Error("an effect was started")
	}
}

// What a call decided stands although its recorder's end was not stored: the refusal says so.
func TestAnUnrecordedEndOfADecisionSaysThatItStands(t *testing.T) {
	var last uint64 // the newest commit that the disk takes
	faults := &eventlog.Faults{AfterSync: func(seq uint64) error {
		if last > 0 && seq > last {
			return errors.New("injected")
		}
		return nil
	}}
	e := calltest.New(t, faults)
	w, target := work(e, calltest.Alpha, ""), work(e, calltest.Alpha, "")
	last = e.Seq() + 2 // the recorder's start and the post
	_, err := e.CallWith(t.Context(), calltest.Owner(), &board.PostMessage, map[string]any{"session_id": target, "kind": "note", "message": "x"},
		call.Envelope{Record: string(w), Field: recordField})
	f := fault.As(err)
	if f == nil || f.Kind != fault.PersistenceUncertain || !strings.Contains(f.Message, "could not be recorded") || !f.StateChanged {
		t.Fatalf("%+v", f)
	}
	if _, b, err := e.Store.LoadBoard(target); err != nil || b.Len() != 1 {
		t.Errorf("%d messages, %v", b.Len(), err)
	}
}

// Whatever goes wrong beside a result, the result stands.
//
// Covers: ACK-11, CTX-12
func TestAnAdditionThatPanicsTakesNothingAway(t *testing.T) {
	e := calltest.New(t, nil)
	e.Ambient = []call.Ambient{
		func(context.Context, *call.Call, bool) []call.Addition { panic("one") },
		func(context.Context, *call.Call, bool) []call.Addition {
			return []call.Addition{{Name: "two", Value: 2}}
		},
	}
	e.Reopen()
	resp, err := e.Call(reads, in{Project: calltest.Alpha.String()})
	if err != nil || !resp.Success || !strings.Contains(string(resp.Output), `"two":2`) {
		t.Errorf("%s, %v", resp.Output, err)
	}
}
