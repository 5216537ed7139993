package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/runtime"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// fleet has one Runner with two Projects and does nothing else.
type fleet struct{ call.Fleet }

func (fleet) Runners() []call.RunnerInfo {
	return []call.RunnerInfo{{Client: "box", Instance: "wc_inst_x", OS: "linux", Projects: 2}}
}
func (fleet) Projects() []call.ProjectInfo { return []call.ProjectInfo{{Root: "r"}, {Root: "r"}} }

// TestStatus: what runs and what an acknowledgement is worth; no path and no Session's id.
//
// Covers: SES-47
func TestStatus(t *testing.T) {
	dir, store, server := t.TempDir(), session.NewStore(), event.NewInstanceID()
	log, err := eventlog.Open(context.Background(), eventlog.Options{Dir: dir, Durability: eventlog.Process, MaxBytes: 64 << 20,
		Server: server, Folds: []eventlog.Fold{store}})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	id := event.NewSessionID()
	if _, err := log.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: event.SessionAggregate(id), At: time.Now(),
		Events: []event.Event{event.SessionCreated{Nonce: event.NewNonce(), Authority: strings.Repeat("a", 64), Mode: event.ModeNormal}}}); err != nil {
		t.Fatal(err)
	}
	started := time.Now().Add(-90 * time.Second)
	k := call.NewKernel(call.Config{Log: log, Sessions: store, Fleet: fleet{}, Server: server, Now: time.Now,
		Info: func() call.ServerInfo {
			return call.ServerInfo{Version: "1.2.3", StartedAt: started, Log: log.Status()}
		}})
	req := call.Request{Spec: runtime.GetRuntimeStatus, Principal: call.Principal{
		Actor:  event.Actor{Authority: strings.Repeat("a", 64), Principal: strings.Repeat("b", 64)},
		Scopes: map[call.Scope]bool{call.ScopeRuntimeRead: true}}}
	read := func() runtime.Status {
		t.Helper()
		resp, err := k.Call(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(resp.Output), dir) || strings.Contains(string(resp.Output), string(id)) {
			t.Errorf("the status names a path or a Session: %s", resp.Output)
		}
		var s runtime.Status
		if err := json.Unmarshal(resp.Output, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := read()
	if s.Version != "1.2.3" || s.Instance != server || s.UptimeS < 89 || !s.Accepting || s.RefusalReason != "" {
		t.Errorf("%+v", s)
	}
	if s.Log.Durability != eventlog.Process || s.Log.Survives != "process_kill" || s.Log.Seq == 0 || s.Log.MaxBytes == 0 {
		t.Errorf("log %+v", s.Log)
	}
	if p := s.Durability; p.Mode != eventlog.Process || p.Reason != "default" || p.Survives != "process_kill" ||
		p.FileSystem == "" || !strings.Contains(p.CutLoses, "acknowledged work") {
		t.Errorf("durability %+v", p)
	}
	if s.Sessions.Sessions != 1 || s.Sessions.Active != 1 || s.Projects != 2 || len(s.Runners) != 1 || s.Runners[0].Client != "box" {
		t.Errorf("%+v", s)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if s = read(); s.Accepting || s.RefusalReason == "" {
		t.Errorf("a closed log still takes work: %+v", s)
	}
	req.Principal.Scopes = nil
	if _, err := k.Call(context.Background(), req); err == nil {
		t.Error("answered without the scope")
	}
}
