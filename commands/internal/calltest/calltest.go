// Package calltest gives tests of commands a Kernel on a real log in a temporary directory.
// Only the Runner is scripted: it is where the pipeline's tests inject faults.
package calltest

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/call"
	remove "webcodex/commands/retention"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/token"
	"webcodex/projections/access"
	"webcodex/projections/external"
	"webcodex/projections/retention"
	"webcodex/projections/session"
	"webcodex/projections/state"
	"webcodex/projections/window"
)

// Env is one server life. Reopen begins the next one on the same log.
type Env struct {
	T      testing.TB
	Dir    string
	Log    *eventlog.Log
	Store  *session.Store
	Fleet  *Fleet
	Kernel *call.Kernel
	Server event.InstanceID
	Lines  chan call.Line
	Faults *eventlog.Faults

	// Tokens are the same in every life, as in the program.
	Tokens *token.Keys

	Refs       *access.Refs
	Tombstones *retention.Tombstones
	Windows    *window.Store
	External   *external.Reports
	// Keeper has the models in state.db, as in the program.
	Keeper *state.Keeper
	// Limit is how many Closed Sessions are retained; it counts from the next Reopen.
	Limit int
	// Ambient are the additions to answers; they count from the next Reopen.
	Ambient []call.Ambient
	// Loop tells of the caller's window; it counts from the next Reopen.
	Loop func(*call.Call) window.Loop
	// Now is the Kernel's clock; it counts from the next Reopen.
	Now func() time.Time
}

// New opens a fresh data directory; faults may be nil.
func New(t testing.TB, faults *eventlog.Faults) *Env {
	t.Helper()
	return At(t, t.TempDir(), faults)
}

// At is New on a directory that may have been used.
func At(t testing.TB, dir string, faults *eventlog.Faults) *Env {
	t.Helper()
	e := &Env{T: t, Dir: dir, Fleet: NewFleet(), Faults: faults, Lines: make(chan call.Line, 1024), Now: time.Now, Limit: remove.DefaultLimit}
	var err error
	if e.Tokens, err = token.New([]byte("of this directory")); err != nil {
		t.Fatal(err)
	}
	e.open()
	t.Cleanup(func() { _ = e.Log.Close() })
	return e
}

func (e *Env) open() {
	e.T.Helper()
	e.Server, e.Store, e.Windows = event.NewInstanceID(), session.NewStore(), window.New()
	e.Refs, e.Tombstones, e.External = access.NewRefs(), retention.New(), external.New()
	log, err := eventlog.Open(context.Background(), eventlog.Options{Dir: e.Dir, Durability: eventlog.Process, Server: e.Server,
		Now: time.Now, Base: e.keeper(), Faults: e.Faults, MaxBytes: 256 << 20})
	if err != nil {
		e.T.Fatal(err)
	}
	e.Log = log
	e.Keeper.Serve(log.SyncedSeq)
	remover := remove.New(remove.Options{Writer: aggregate.NewWriter(log, time.Now), Sessions: e.Store, Tombstones: e.Tombstones, Limit: e.Limit})
	e.Kernel = call.NewKernel(call.Config{Tokens: e.Tokens, Windows: e.Windows, Epoch: log.Epoch, Log: log, Sessions: e.Store, Refs: e.Refs, Tombstones: e.Tombstones, External: e.External, OnClosed: remover.Closed, Fleet: e.Fleet, Server: e.Server, Now: e.Now, Loop: e.Loop, Ambient: e.Ambient,
		OnCall: func(l call.Line) {
			select {
			case e.Lines <- l:
			default:
			}
		}})
	remover.Run(context.Background())
}

// keeper makes the file of this life's models; the log closes it.
func (e *Env) keeper() *state.Keeper {
	e.Keeper = state.New(state.Options{Path: filepath.Join(e.Dir, "state.db"), Fold: "test",
		Models: []state.Model{e.Windows, e.Tombstones, e.Refs, e.External, e.Store.Model()}})
	e.Store.SetSource(func(ctx context.Context, id event.SessionID, fn func(session.Stored) error) error {
		return e.Log.Replay(ctx, eventlog.Range{Aggregate: event.SessionAggregate(id)}, func(x eventlog.Entry) error {
			return fn(session.Stored{Seq: x.Seq, Hash: x.Hash, Commit: x.Commit})
		})
	})
	e.Store.SetKeeper(e.Keeper)
	return e.Keeper
}

// Reopen ends this server life and begins the next.
func (e *Env) Reopen() {
	e.T.Helper()
	if err := e.Log.Close(); err != nil {
		e.T.Fatal(err)
	}
	e.open()
}

// Owner is the local owner with every scope but those left out.
func Owner(without ...call.Scope) call.Principal { return Someone("a", without...) }

// Someone is a principal whose fingerprints are made of one character.
func Someone(char string, without ...call.Scope) call.Principal {
	p := call.Principal{Actor: event.Actor{Authority: strings.Repeat(char, 64), Principal: strings.Repeat(char, 64), Credential: "owner"},
		Scopes: map[call.Scope]bool{}}
	for _, s := range []call.Scope{call.ScopeRuntimeRead, call.ScopeProjectRead, call.ScopeProjectWrite, call.ScopeJobRun,
		call.ScopeJobDetach, call.ScopeCollaborate} {
		p.Scopes[s] = true
	}
	for _, s := range without {
		p.Scopes[s] = false
	}
	return p
}

// Call makes a call as the owner; args is a JSON object or a value to encode.
func (e *Env) Call(spec *call.Spec, args any) (call.Response, error) {
	return e.CallAs(context.Background(), Owner(), spec, args)
}

// CallAs makes a call as anybody.
func (e *Env) CallAs(ctx context.Context, p call.Principal, spec *call.Spec, args any) (call.Response, error) {
	e.T.Helper()
	return e.CallWith(ctx, p, spec, args, call.Envelope{})
}

// CallWith is CallAs with what a request may carry beside its arguments.
func (e *Env) CallWith(ctx context.Context, p call.Principal, spec *call.Spec, args any, env call.Envelope) (call.Response, error) {
	e.T.Helper()
	raw, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		if err != nil {
			e.T.Fatal(err)
		}
		raw = string(b)
	}
	return e.Kernel.Call(ctx, call.Request{Spec: spec, Args: json.RawMessage(raw), Principal: p, Transport: "mcp", Envelope: env})
}

// Must makes a call that has to succeed and decodes its output.
func Must[Out any](e *Env, spec *call.Spec, args any) Out {
	e.T.Helper()
	resp, err := e.Call(spec, args)
	if err != nil {
		e.T.Fatalf("%s: %v", spec.Name, err)
	}
	var out Out
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		e.T.Fatal(err)
	}
	return out
}

// Seq is the newest commit of the log: what it was before tells whether anything was written.
func (e *Env) Seq() uint64 { return e.Log.Status().Seq }

// Refused makes a call that has to be refused with the kind, with nothing written.
func (e *Env) Refused(p call.Principal, spec *call.Spec, args any, kind fault.Kind) *fault.Error {
	e.T.Helper()
	before := e.Seq()
	_, err := e.CallAs(context.Background(), p, spec, args)
	if got := fault.KindOf(err); got != kind {
		e.T.Errorf("%s %v: kind %q, want %q (%v)", spec.Name, args, got, kind, err)
	}
	if after := e.Seq(); after != before {
		e.T.Errorf("%s %v: a refusal wrote %d commits", spec.Name, args, after-before)
	}
	if err == nil {
		return fault.New(kind, "none")
	}
	return fault.As(err)
}

// Events are the stored events of a Session, oldest first.
func (e *Env) Events(id event.SessionID) []event.Event {
	e.T.Helper()
	var out []event.Event
	for _, c := range e.Commits(id) {
		out = append(out, c.Events...)
	}
	return out
}

// Append puts one commit of events into a Session, as other writers would have.
func (e *Env) Append(id event.SessionID, events ...event.Event) {
	e.T.Helper()
	e.Commit(event.SessionAggregate(id), events...)
}

// Commit is Append for any aggregate.
func (e *Env) Commit(a event.Aggregate, events ...event.Event) {
	e.T.Helper()
	head, err := e.Log.Head(a)
	if err != nil {
		e.T.Fatal(err)
	}
	if _, err := e.Log.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(),
		Actor: Owner().Actor, Events: events}); err != nil {
		e.T.Fatal(err)
	}
}

// Commits of a Session, oldest first.
func (e *Env) Commits(id event.SessionID) []event.Commit {
	e.T.Helper()
	var out []event.Commit
	err := e.Log.Replay(context.Background(), eventlog.Range{Aggregate: event.SessionAggregate(id)}, func(x eventlog.Entry) error {
		out = append(out, x.Commit)
		return nil
	})
	if err != nil {
		e.T.Fatal(err)
	}
	return out
}
