package server_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"webcodex/commands/execution"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// gate is a log with a way in for Runners from outside, over loopback.
type gate struct {
	t    testing.TB
	dir  string
	log  *eventlog.Log
	addr string
	mu   sync.Mutex
	keys map[string]event.ClientID
	// refusals is how often a key was not among them.
	refusals int
}

func newGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{t: t, dir: t.TempDir(), keys: map[string]event.ClientID{}}
	var err error
	g.log, err = eventlog.Open(t.Context(), eventlog.Options{Dir: filepath.Join(g.dir, "data"), Durability: eventlog.Process,
		Server: event.NewInstanceID(), MaxBytes: 64 << 20, Runners: eventlog.RunnerListen{Address: "127.0.0.1:0", Plain: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.log.Close() })
	at, err := g.log.ServeRunners(func(public string) (eventlog.RunnerKey, bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		c, ok := g.keys[public]
		if !ok {
			g.refusals++
		}
		return eventlog.RunnerKey{Client: c}, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	g.addr = at.Address
	return g
}

// fleet is a server that hears Runners; those of these clients are admitted.
func (g *gate) fleet(serves func(event.ProjectID, string) bool, admitted ...event.ClientID) *execution.Fleet {
	g.t.Helper()
	bus, err := g.log.ServerBus()
	if err != nil {
		g.t.Fatal(err)
	}
	f, err := execution.New(execution.Options{Bus: bus, Dir: filepath.Join(g.dir, "data"), Server: event.NewInstanceID(),
		Remotes: execution.Remotes{Local: "local", Build: "server 1", Admit: func(c event.ClientID) (func(event.ProjectID, string) bool, bool) {
			for _, a := range admitted {
				if a == c {
					return serves, true
				}
			}
			return nil, false
		}}})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(f.Close)
	return f
}

func everything(event.ProjectID, string) bool { return true }

// runner connects as a Runner that does what it likes.
func (g *gate) runner(c event.ClientID) *nats.Conn {
	g.t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		g.t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		g.t.Fatal(err)
	}
	g.mu.Lock()
	g.keys[public] = c
	g.mu.Unlock()
	nc, err := nats.Connect("nats://"+g.addr, nats.Nkey(public, key.Sign), nats.CustomInboxPrefix(wire.InboxPrefix(c)),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(nc.Close)
	return nc
}

// ask sends anything on a subject and decodes the answer; false: none came.
func ask[Out any](g *gate, nc *nats.Conn, subject string, body []byte) (out Out, answered bool) {
	g.t.Helper()
	m, err := nc.Request(subject, body, 500*time.Millisecond)
	if err != nil {
		return out, false
	}
	if err := json.Unmarshal(m.Data, &out); err != nil {
		g.t.Errorf("%s: %v", subject, err)
	}
	return out, true
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// hello is one that is taken.
func hello(c event.ClientID, change func(*wire.Hello)) wire.Hello {
	h := wire.Hello{Protocol: wire.Protocol, Client: c, Instance: event.NewInstanceID(), Build: "test", OS: "linux", Arch: "amd64",
		Capabilities: []string{string(wire.OpShell)}, Generation: "g1", Boot: "b1", Listening: true,
		Projects: []wire.Project{{ID: "site-00000001", Name: "site", Root: strings.Repeat("a", 64)}}}
	change(&h)
	return h
}

func same(*wire.Hello) {}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func decode[T any](b []byte) (T, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return v, err
}
