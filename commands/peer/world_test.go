package peer_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/commands/attention"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/peer"
	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

type obj = map[string]any

const (
	here  = event.WindowID("1111111111111111111111111111111111111111111111111111111111111111")
	there = event.WindowID("2222222222222222222222222222222222222222222222222222222222222222")
	third = event.WindowID("3333333333333333333333333333333333333333333333333333333333333333")
)

// world is a server with windows, on a clock that tests move.
type world struct {
	*calltest.Env
	ahead atomic.Int64
	peers *peer.Peers
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Env: calltest.New(t, nil)}
	w.Now = func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	w.restart()
	return w
}

// restart begins another life of the server: what was in memory alone is gone.
func (w *world) restart() {
	w.T.Helper()
	w.peers = &peer.Peers{}
	w.Loop = w.peers.Loop
	w.Ambient = []call.Ambient{attention.New(w.peers.Affine), w.peers.Ambient}
	w.Reopen()
}

func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

// someone's window with what a request carries.
type from struct {
	who    call.Principal
	window event.WindowID
	env    call.Envelope
	gone   bool // it has left before its answer
}

func at(w event.WindowID) from { return from{who: calltest.Owner(), window: w} }

func (f from) ack(ids ...event.MessageID) from { f.env.Ack = ids; return f }

func (f from) recording(id event.SessionID) from { f.env.Record = string(id); return f }

var (
	reads = &call.Spec{Name: "read_files", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject,
		Run: func(context.Context, *call.Call) (call.Result, error) {
			return call.Result{Output: obj{"main": true}}, nil
		}}
	fails = &call.Spec{Name: "run_process", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject,
		Run: func(context.Context, *call.Call) (call.Result, error) {
			return call.Result{Failed: true, Error: "no"}, nil
		}}
	looks = &call.Spec{Name: "get_git_status", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Status: true, Run: reads.Run}
	asks  = &call.Spec{Name: "get_runtime_status", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, Run: reads.Run}
)

// added is what an answer carries beside its output.
type added struct {
	Awareness *peer.Awareness      `json:"peer_awareness"`
	Inbox     *peer.Inbox          `json:"peer_messages"`
	Gap       *peer.Gap            `json:"recorder_gap"`
	Attention *attention.Attention `json:"session_attention"`
	SessionID event.SessionID      `json:"session_id"`
	MessageID event.MessageID      `json:"message_id"`
	Replayed  bool                 `json:"replayed"`
}

func (w *world) try(f from, spec *call.Spec, args any) (added, error) {
	w.T.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		w.T.Fatal(err)
	}
	resp, err := w.Kernel.Call(context.Background(), call.Request{Spec: spec, Args: raw, Principal: f.who, Transport: "mcp", Window: f.window, Envelope: f.env,
		Gone: func() bool { return f.gone }})
	var out added
	if err == nil {
		if jerr := json.Unmarshal(resp.Output, &out); jerr != nil {
			w.T.Fatal(jerr)
		}
	}
	return out, err
}

func (w *world) call(f from, spec *call.Spec, args any) added {
	w.T.Helper()
	out, err := w.try(f, spec, args)
	if err != nil {
		w.T.Fatal(err)
	}
	return out
}

func (w *world) read(f from, p event.ProjectRef) added {
	w.T.Helper()
	return w.call(f, reads, obj{"project": p.String()})
}

func (w *world) work(f from, p event.ProjectRef) event.SessionID {
	w.T.Helper()
	return w.call(f, &session.WorkOnProject, obj{"project": p.String(), "instruction": "x"}).SessionID
}

func (w *world) post(f from, id event.PeerID, text string, more ...any) added {
	w.T.Helper()
	return w.call(f, &peer.PostMessage, postArgs(id, text, more...))
}

func postArgs(id event.PeerID, text string, more ...any) obj {
	args := obj{"peer_id": id, "message": text}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return args
}

// meet has two windows of the owner work on alpha, and gives the name of each.
func (w *world) meet() (one, other event.PeerID) {
	w.T.Helper()
	w.read(at(here), calltest.Alpha)
	a := w.read(at(there), calltest.Alpha).Awareness
	b := w.read(at(here), calltest.Alpha).Awareness
	if a == nil || b == nil || len(a.Peers) != 1 || len(b.Peers) != 1 {
		w.T.Fatalf("they did not meet: %+v %+v", a, b)
	}
	return a.Peers[0].PeerID, b.Peers[0].PeerID
}

func (w *world) refused(f from, args obj, kind fault.Kind) {
	w.T.Helper()
	before := w.Seq()
	if _, err := w.try(f, &peer.PostMessage, args); fault.KindOf(err) != kind {
		w.T.Errorf("%v: %v, want %s", args, err, kind)
	}
	if w.Seq() != before {
		w.T.Errorf("%v: a refusal wrote", args)
	}
}

// commits of every record but the windows', as text: what nothing here may touch.
func (w *world) others() string {
	w.T.Helper()
	var b strings.Builder
	err := w.Log.Replay(context.Background(), eventlog.Range{}, func(x eventlog.Entry) error {
		if x.Commit.Aggregate.Domain != event.DomainWindow {
			b.WriteString(x.Hash + "\n")
		}
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return b.String()
}

// stored are the events of a principal's windows.
func (w *world) stored(p call.Principal) (out []event.Event) {
	w.T.Helper()
	err := w.Log.Replay(context.Background(), eventlog.Range{Aggregate: event.WindowAggregate(p.Actor.Principal)}, func(x eventlog.Entry) error {
		out = append(out, x.Commit.Events...)
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return out
}

func texts(in *peer.Inbox) (out []string) {
	if in != nil {
		for _, m := range in.Messages {
			out = append(out, m.Message)
		}
	}
	return out
}
