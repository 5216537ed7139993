package call_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

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
