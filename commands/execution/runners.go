package execution

import (
	"context"
	"slices"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// maxSeen bounds the Runners of which their last word is remembered.
const maxSeen = 1000

// refusedProtocol is the reason of a hello in another protocol.
const refusedProtocol = "protocol"

// last is a Runner's last word in this server life.
type last struct {
	hello   wire.Hello
	at      time.Time
	refused string // why it has no lease; empty: it had one
}

// saw keeps a Runner's last word. The caller holds mu.
func (f *Fleet) saw(c event.ClientID, h wire.Hello, refused string) {
	if _, known := f.seen[c]; !known && len(f.seen) >= maxSeen {
		return
	}
	h.Projects, h.Jobs = nil, nil
	h.Build, h.OS, h.Arch, h.Trouble = clip(h.Build), clip(h.OS), clip(h.Arch), clip(h.Trouble)
	h.Capabilities = capabilitiesOf(h)
	f.seen[c] = last{hello: h, at: f.o.Now(), refused: refused}
}

// capabilitiesOf are a Runner's, as far as this server knows them.
func capabilitiesOf(h wire.Hello) []string {
	out := []string{}
	for _, name := range h.Capabilities {
		_, known := wire.Ops[wire.Op(name)]
		if (known || slices.Contains(wire.Features, name)) && len(out) < len(wire.Ops)+len(wire.Features) {
			out = append(out, name)
		}
	}
	return out
}

// Runner implements call.Fleet.
func (f *Fleet) Runner(c event.ClientID) (call.Target, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.leases[c]; l != nil && l.connected {
		return call.Target{Ref: event.ProjectRef{Client: c}, Instance: l.hello.Instance, Generation: l.hello.Generation, Boot: l.hello.Boot}, nil
	}
	if f.knows(c) {
		return call.Target{}, f.absent(c)
	}
	return call.Target{}, fault.New(fault.UnknownClientID, "no Runner of that name is known here").WithField("client_id").WithNext("call list_runners")
}

// knows reports whether a Runner of that name was ever here, or is let in. The caller holds mu.
func (f *Fleet) knows(c event.ClientID) bool {
	if _, seen := f.seen[c]; seen || f.leases[c] != nil || slices.Contains(f.enrolled(), c) {
		return true
	}
	for ref := range f.named {
		if ref.Client == c {
			return true
		}
	}
	return false
}

// enrolled are the Runners of other processes that are let in.
func (f *Fleet) enrolled() []event.ClientID {
	if f.o.Remotes.Enrolled == nil {
		return nil
	}
	return f.o.Remotes.Enrolled()
}

// absent says why nobody serves a client that is known. The caller holds mu.
func (f *Fleet) absent(c event.ClientID) *fault.Error {
	if s := f.seen[c]; s.refused == refusedProtocol && f.leases[c] == nil {
		return fault.New(fault.RunnerUnavailable, "the Runner speaks protocol %d and this server %d: one of the two is too old", s.hello.Protocol, wire.Protocol).
			WithReason(call.ReasonProtocol).WithNext("install the same version of WebCodex on both machines")
	}
	return unavailable()
}

// lacks refuses an op that the Runner has not said it can do, before anything is offered. A
// Runner of which nothing is known now is asked all the same: it says so itself.
func (f *Fleet) lacks(t call.Target, op wire.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.leases[t.Ref.Client]
	if l == nil || l.instance != t.Instance || slices.Contains(l.hello.Capabilities, string(op)) {
		return nil
	}
	miss := fault.New(fault.CapabilityUnavailable, "the Runner cannot do this: it lacks the capability %s", op).WithReason(string(op)).
		WithNext("call list_runners to see what it can do; a newer version of WebCodex on its machine may be able to")
	miss.ExecutionState = string(event.NotStarted)
	return miss
}

// Await implements call.Fleet.
func (f *Fleet) Await(ctx context.Context, ref event.ProjectRef, served bool) error {
	for {
		f.mu.Lock()
		l := f.leases[ref.Client]
		is := false
		if l != nil && l.connected {
			_, is = l.projects[ref.Project]
		}
		change := f.change
		f.mu.Unlock()
		if is == served {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.RunnerUnavailable, "the Runner has not told of the change yet, or may serve other Projects only").
				WithNext("call list_projects")
		}
	}
}

// Forget implements call.Fleet.
func (f *Fleet) Forget(ref event.ProjectRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, known := f.named[ref]; known {
		p.Root = ""
		f.named[ref] = p
	}
}

// Runners implements call.Fleet.
func (f *Fleet) Runners() []call.RunnerInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []call.RunnerInfo
	for c, l := range f.leases {
		if l.connected {
			out = append(out, runnerInfo(c, last{hello: l.hello}, l))
		}
	}
	return sorted(out)
}

// KnownRunners implements call.Fleet.
func (f *Fleet) KnownRunners() []call.RunnerInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[event.ClientID]last{}
	for ref := range f.named {
		all[ref.Client] = last{}
	}
	for _, c := range f.enrolled() {
		all[c] = last{}
	}
	for c, s := range f.seen {
		all[c] = s
	}
	var out []call.RunnerInfo
	for c, s := range all {
		l := f.leases[c]
		if l != nil && l.connected {
			s = last{hello: l.hello, at: s.at}
		} else {
			l = nil
		}
		out = append(out, runnerInfo(c, s, l))
	}
	return sorted(out)
}

// runnerInfo describes a Runner by its last word; l is its lease where it is connected.
func runnerInfo(c event.ClientID, s last, l *lease) call.RunnerInfo {
	h := s.hello
	r := call.RunnerInfo{Client: c, Status: call.RunnerDisconnected, Instance: h.Instance, Protocol: h.Protocol, Build: clip(h.Build),
		OS: clip(h.OS), Arch: clip(h.Arch), Capabilities: capabilitiesOf(h), Trouble: clip(h.Trouble), SeenAt: s.at, Slots: tameSlots(h.Slots)}
	switch {
	case l != nil:
		r.Status, r.ConnectedAt, r.Projects = call.RunnerConnected, l.since, len(l.projects)
	case s.refused != "":
		r.Status = call.RunnerRefused
	}
	return r
}

func sorted(list []call.RunnerInfo) []call.RunnerInfo {
	slices.SortFunc(list, func(a, b call.RunnerInfo) int { return strings.Compare(string(a.Client), string(b.Client)) })
	return list
}

// tameSlots bounds what a Runner says of its Jobs.
func tameSlots(s *wire.JobSlots) *wire.JobSlots {
	if s == nil {
		return nil
	}
	n := func(v int) int { return min(max(v, 0), wire.MaxInventory) }
	return &wire.JobSlots{Limit: n(s.Limit), Running: n(s.Running), Queued: n(s.Queued)}
}
