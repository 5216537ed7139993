package mcp

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

func (r *rig) legacyCount() int {
	r.srv.legacy.mu.Lock()
	defer r.srv.legacy.mu.Unlock()
	return len(r.srv.legacy.byID)
}

// TestAllLegacySessionsBusy: where no session can make room for another the refusal says so in
// its error kind.
func TestAllLegacySessionsBusy(t *testing.T) {
	r := newRig(t)
	r.srv.legacy.byID = map[string]*legacySession{}
	for i := range MaxLegacySessions {
		r.srv.legacy.byID[strconv.Itoa(i)] = &legacySession{busy: 1, grant: grant{principal: r.access.principal}}
	}
	m := last(t, r.send(request{body: stdioInit}))
	if m.Error == nil || m.Error.Code != codeInternal || !strings.Contains(string(m.Error.Data), `"error_kind":"too_many_calls"`) {
		t.Errorf("%+v", m.Error)
	}
}

// TestLegacySessionsAreBounded: clients that never end their sessions do not fill the server.
func TestLegacySessionsAreBounded(t *testing.T) {
	r := newRig(t)
	first := r.initialize(legacy2)
	busy := r.initialize(legacy1)
	lines := r.stream(t.Context(), legacyCall("wait", `{}`, legacyHeader(legacy1, busy)))
	soon(t, r.probe.entered, "busy session")
	base := runtime.NumGoroutine()
	for range 3 * MaxLegacySessions {
		r.initialize(legacy2)
		if n := r.legacyCount(); n > MaxLegacySessions {
			t.Fatalf("%d sessions", n)
		}
	}
	if resp := r.send(legacyCall("echo", `{}`, legacyHeader(legacy2, first))); resp.status != http.StatusNotFound {
		t.Errorf("the oldest idle session is still there: %d", resp.status)
	}
	other := legacyCall("echo", `{}`, legacyHeader(legacy1, busy))
	other.body = strings.Replace(other.body, `"id":7`, `"id":8`, 1)
	if resp := r.send(other); resp.status != http.StatusOK {
		t.Errorf("the busy session was taken away: %d", resp.status)
	}
	close(r.probe.release)
	for range lines { // to the end of the call
	}
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > base+12*MaxLegacySessions && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > base+12*MaxLegacySessions {
		t.Errorf("%d goroutines, %d before", n, base)
	}
}
