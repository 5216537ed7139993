package calltest

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Fleet is a scripted Runner with two Projects. Its functions may be replaced by a test.
type Fleet struct {
	OnRun   func(ctx context.Context, x call.Execution) (call.Outcome, error)
	OnAsk   func(op wire.Op, body json.RawMessage) (any, error)
	OnQuery func(id event.ExecutionID) (wire.QueryReply, error)
	// OnCancel says whether a request to end is taken; nil: it always is.
	OnCancel func(id event.ExecutionID) bool
	// Capabilities are what the Runner says that it serves, set before the first call.
	Capabilities []string

	mu     sync.Mutex
	gone   map[event.ProjectRef]bool
	roots  map[event.ProjectRef]string // those that have moved
	starts []event.ExecutionID
	taken  []call.Execution
	asks   []wire.Op
}

// The two Projects.
var (
	Alpha = event.ProjectRef{Client: "local", Project: "alpha-00000001"}
	Beta  = event.ProjectRef{Client: "local", Project: "beta-00000002"}
)

// NewFleet makes one where every effect succeeds with exit status 0.
func NewFleet() *Fleet {
	f := &Fleet{gone: map[event.ProjectRef]bool{}, roots: map[event.ProjectRef]string{}}
	f.OnRun = f.Succeed
	f.OnAsk = func(op wire.Op, _ json.RawMessage) (any, error) {
		if op == wire.OpObserveWorkspace {
			return wire.ObserveWorkspaceOut{Status: "clean", Branch: "main", Head: strings.Repeat("1", 40), Conflicts: []string{},
				Instructions: &wire.InstructionSources{}}, nil
		}
		return nil, fault.New(fault.Unavailable, "not scripted: %s", op)
	}
	f.OnQuery = func(event.ExecutionID) (wire.QueryReply, error) {
		return wire.QueryReply{}, fault.New(fault.RunnerUnavailable, "not scripted")
	}
	return f
}

// Succeed grants, starts and ends well.
func (f *Fleet) Succeed(ctx context.Context, x call.Execution) (call.Outcome, error) {
	return f.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)})
}

// End grants, starts and ends with the outcome.
func (f *Fleet) End(ctx context.Context, x call.Execution, p wire.ProcessOutcome) (call.Outcome, error) {
	if err := f.Grant(ctx, x); err != nil {
		return call.Outcome{}, err
	}
	return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Process: &p}}, nil
}

// Grant waits for the start commit as a grant does and counts the start.
func (f *Fleet) Grant(ctx context.Context, x call.Execution) error {
	if err := x.Ready(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts = append(f.starts, x.Offer.ID)
	return nil
}

// Starts are the executions started so far.
func (f *Fleet) Starts() []event.ExecutionID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]event.ExecutionID{}, f.starts...)
}

// Asks are the reads asked for so far.
func (f *Fleet) Asks() []wire.Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]wire.Op{}, f.asks...)
}

// Disconnect makes a Project's Runner go.
func (f *Fleet) Disconnect(ref event.ProjectRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[ref] = true
}

// Move gives a Project another root.
func (f *Fleet) Move(ref event.ProjectRef, fingerprint string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roots[ref] = fingerprint
}

// root is the fingerprint of a Project's root; the caller holds mu.
func (f *Fleet) root(ref event.ProjectRef) string {
	if r := f.roots[ref]; r != "" {
		return r
	}
	return strings.Repeat("r", 64)
}

// Target implements call.Fleet.
func (f *Fleet) Target(ref event.ProjectRef) (call.Target, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ref != Alpha && ref != Beta {
		return call.Target{}, fault.New(fault.UnknownProject, "no such Project is registered here")
	}
	if f.gone[ref] {
		return call.Target{}, fault.New(fault.RunnerUnavailable, "the Runner of this Project is not connected")
	}
	return call.Target{Ref: ref, Name: string(ref.Project), Instance: "runner-life", Root: f.root(ref), Generation: "g1", Boot: "b1"}, nil
}

// Projects implements call.Fleet.
func (f *Fleet) Projects() []call.ProjectInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []call.ProjectInfo
	git := true
	for _, ref := range []event.ProjectRef{Alpha, Beta} {
		name, _, _ := strings.Cut(string(ref.Project), "-")
		out = append(out, call.ProjectInfo{Ref: ref, Project: ref.String(), Name: name, Root: f.root(ref), Git: &git, Connected: !f.gone[ref]})
	}
	return out
}

// Runners implements call.Fleet.
func (f *Fleet) Runners() []call.RunnerInfo {
	return []call.RunnerInfo{{Client: Alpha.Client, Capabilities: f.Capabilities}}
}

// KnownRunners implements call.Fleet.
func (f *Fleet) KnownRunners() []call.RunnerInfo { return f.Runners() }

// Runner implements call.Fleet.
func (f *Fleet) Runner(c event.ClientID) (call.Target, error) {
	if c != Alpha.Client {
		return call.Target{}, fault.New(fault.UnknownClientID, "no Runner of that name is known here")
	}
	return call.Target{Ref: event.ProjectRef{Client: c}, Instance: "runner-life", Generation: "g1", Boot: "b1"}, nil
}

// Await implements call.Fleet.
func (f *Fleet) Await(context.Context, event.ProjectRef, bool) error { return nil }

// Forget implements call.Fleet.
func (f *Fleet) Forget(event.ProjectRef) {}

// Ask implements call.Fleet.
func (f *Fleet) Ask(_ context.Context, _ call.Target, op wire.Op, body json.RawMessage, _ time.Duration) (json.RawMessage, error) {
	f.mu.Lock()
	f.asks = append(f.asks, op)
	f.mu.Unlock()
	out, err := f.OnAsk(op, body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Run implements call.Fleet.
func (f *Fleet) Run(ctx context.Context, x call.Execution) (call.Outcome, error) {
	return f.OnRun(ctx, x)
}

// Adopt implements call.Fleet.
func (f *Fleet) Adopt(x call.Execution) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken = append(f.taken, x)
}

// Adopted are the executions of earlier server lives that were taken over so far.
func (f *Fleet) Adopted() []call.Execution {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]call.Execution{}, f.taken...)
}

// Query implements call.Fleet.
func (f *Fleet) Query(_ context.Context, _ event.ClientID, id event.ExecutionID) (wire.QueryReply, error) {
	return f.OnQuery(id)
}

// Cancel implements call.Fleet.
func (f *Fleet) Cancel(_ context.Context, _ event.ClientID, id event.ExecutionID, _ string) (bool, error) {
	return f.OnCancel == nil || f.OnCancel(id), nil
}

// Digest implements call.Fleet.
func (f *Fleet) Digest(o wire.Offer) string { return wire.Digest([]byte("key"), o) }
