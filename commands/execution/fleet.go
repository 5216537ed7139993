// Package execution is the server's end of executions: which Runners live, what they serve,
// and how an effect is made at most once with an answer that is true (faults.md 3). It
// implements call.Fleet.
package execution

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/link/server"
	"webcodex/runner/wire"
)

// Options of New.
type Options struct {
	// Bus is the server's connection to the Runners' account.
	Bus *server.Conn
	// Dir holds the key of the digests; the data directory.
	Dir string
	// Server names this life.
	Server event.InstanceID
	// Now is the wall clock, for what people see.
	Now    func() time.Time
	Logger *slog.Logger
	// Known lists Projects that earlier lives registered; may be nil.
	Known func() []event.ProjectRegistered
	// Register records a Project that is new or has changed; may be nil. It is repeated at the
	// Runner's next hello when it fails.
	Register func(context.Context, event.ProjectRegistered) error
	Remotes  Remotes
}

// Fleet is all Runners as this server sees them.
type Fleet struct {
	o     Options
	key   []byte
	fresh bool // the key was made in this life
	link  *server.Server
	proof time.Duration // wire.ProofWait, shorter in tests
	born  time.Time

	mu      sync.Mutex
	leases  map[event.ClientID]*lease
	flights map[event.ExecutionID]*flight
	named   map[event.ProjectRef]event.ProjectRegistered // as registered
	seen    map[event.ClientID]last
	// announced is what each Runner may still register.
	announced map[event.ClientID]announcing
	change    chan struct{} // closed when a Runner came or went
	closed    chan struct{}
}

// lease is a Runner's right to serve its client id.
type lease struct {
	instance  event.InstanceID // of all its hellos
	hello     wire.Hello
	since     time.Time
	connected bool // it listens
	timer     *time.Timer
	projects  map[event.ProjectID]wire.Project
}

// New listens for Runners.
func New(o Options) (*Fleet, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	key, fresh, err := loadKey(o.Dir)
	if err != nil {
		return nil, err
	}
	f := &Fleet{o: o, proof: wire.ProofWait, key: key, fresh: fresh, born: time.Now(), leases: map[event.ClientID]*lease{}, flights: map[event.ExecutionID]*flight{},
		named: map[event.ProjectRef]event.ProjectRegistered{}, seen: map[event.ClientID]last{}, announced: map[event.ClientID]announcing{}, change: make(chan struct{}), closed: make(chan struct{})}
	if o.Known != nil {
		for _, p := range o.Known() {
			f.named[p.Project] = p
		}
	}
	f.link, err = f.listen()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "the server could not listen for Runners")
	}
	return f, nil
}

// FreshKey tells that the key of the digests was made in this life: there was none.
func (f *Fleet) FreshKey() bool { return f.fresh }

// Close stops listening. Executions go on at their Runners; who waits for one is told that its
// outcome is unknown here, or that it never was granted.
func (f *Fleet) Close() {
	f.link.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.closed:
	default:
		close(f.closed)
	}
	for _, l := range f.leases {
		l.timer.Stop()
	}
}

// WaitRunner blocks until the client's Runner is connected.
func (f *Fleet) WaitRunner(ctx context.Context, c event.ClientID) error {
	for {
		f.mu.Lock()
		l := f.leases[c]
		there, change := l != nil && l.connected, f.change
		f.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.RunnerUnavailable, "the Runner did not connect in time")
		}
	}
}

// hello grants, keeps or refuses a lease.
func (f *Fleet) hello(c event.ClientID, h wire.Hello) wire.HelloReply {
	if h.Protocol != wire.Protocol {
		f.mu.Lock()
		f.saw(c, h, refusedProtocol)
		f.mu.Unlock()
		return f.answer(h, wire.RefusedProtocol)
	}
	if reason := f.admitted(c, &h); reason != "" {
		return f.answer(h, reason)
	}
	f.mu.Lock()
	old := f.leases[c]
	f.mu.Unlock()
	if old != nil && old.instance != h.Instance && f.lives(c) {
		return f.answer(h, wire.RefusedSecond)
	}
	changed, ok := f.renew(c, h, old)
	if !ok {
		return f.answer(h, wire.RefusedSecond)
	}
	if changed {
		go f.arrived(c, h)
	}
	return f.answer(h, "")
}

// lives asks whether the holder of a lease still serves: a dead one's lease ends at once.
func (f *Fleet) lives(c event.ClientID) bool {
	ctx, cancel := context.WithTimeout(context.Background(), askWait)
	defer cancel()
	_, err := f.link.Query(ctx, c, wire.Query{})
	return !errors.Is(err, server.ErrGone)
}

// renew puts the lease; old is what it was decided on.
func (f *Fleet) renew(c event.ClientID, h wire.Hello, old *lease) (changed, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leases[c] != old {
		return false, f.leases[c] != nil && f.leases[c].instance == h.Instance
	}
	l := old
	if old == nil || old.instance != h.Instance {
		if old != nil {
			old.timer.Stop()
		}
		l = &lease{instance: h.Instance, since: f.o.Now()}
		l.timer = time.AfterFunc(wire.Lease, func() { f.expire(c, l) })
		f.leases[c] = l
	} else {
		l.timer.Reset(wire.Lease)
	}
	f.saw(c, h, "")
	changed = h.Listening && (!l.connected || !slices.Equal(l.hello.Projects, h.Projects))
	l.hello, l.connected = h, h.Listening
	l.projects = make(map[event.ProjectID]wire.Project, len(h.Projects))
	for _, p := range h.Projects {
		if r := (event.ProjectRef{Client: c, Project: p.ID}); validProject(r) {
			p.Name = clip(p.Shown())
			l.projects[p.ID] = p
		}
	}
	if changed {
		f.signal()
	}
	return changed, true
}

func (f *Fleet) signal() {
	close(f.change)
	f.change = make(chan struct{})
}

// arrived follows a Runner that came or changed: its Projects are registered, and executions
// that another life of it left open are asked for.
func (f *Fleet) arrived(c event.ClientID, h wire.Hello) {
	for _, p := range h.Projects {
		f.register(event.ProjectRegistered{Project: event.ProjectRef{Client: c, Project: p.ID}, Name: clip(p.Shown()), Root: p.Root})
	}
	f.mu.Lock()
	var open []*flight
	for _, fl := range f.flights {
		if fl.client == c && (fl.instance != h.Instance || fl.adopted) {
			open = append(open, fl)
		}
	}
	f.mu.Unlock()
	for _, fl := range open {
		go f.settleByJournal(fl)
	}
}

func (f *Fleet) register(p event.ProjectRegistered) {
	f.mu.Lock()
	needs := f.named[p.Project] != p && f.serves(p)
	f.mu.Unlock()
	if !needs || !validProject(p.Project) || !f.mayAnnounce(p.Project) {
		return
	}
	if f.o.Register != nil {
		ctx, cancel := context.WithTimeout(context.Background(), ackWait)
		defer cancel()
		if err := f.o.Register(ctx, p); err != nil {
			f.o.Logger.Error("a Project could not be registered", "project", p.Project.String(), "cause", err)
			return
		}
	}
	f.mu.Lock()
	f.named[p.Project] = p
	f.mu.Unlock()
}

// serves reports that a Runner still says that it serves the Project so: it may have been
// unregistered while its registration was on its way. The caller holds mu.
func (f *Fleet) serves(p event.ProjectRegistered) bool {
	l := f.leases[p.Project.Client]
	return l != nil && l.projects[p.Project.Project].Root == p.Root
}

func (f *Fleet) expire(c event.ClientID, l *lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leases[c] == l {
		delete(f.leases, c)
		f.signal()
	}
}

// gone notes that nobody serves a client any more; a Runner that lives says hello again.
func (f *Fleet) gone(c event.ClientID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.leases[c]; l != nil && l.connected {
		l.connected = false
		f.signal()
	}
}

// Target implements call.Fleet.
func (f *Fleet) Target(ref event.ProjectRef) (call.Target, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.leases[ref.Client]; l != nil && l.connected {
		if p, ok := l.projects[ref.Project]; ok {
			return call.Target{Ref: ref, Name: p.Name, Instance: l.hello.Instance, Root: p.Root,
				Generation: l.hello.Generation, Boot: l.hello.Boot}, nil
		}
	}
	if p, known := f.named[ref]; known {
		if p.Root == "" {
			return call.Target{}, fault.New(fault.UnknownProject, "this Project was unregistered; its Sessions are kept").WithField("project").
				WithReason("unregistered").WithNext("call register_project with its directory to work on it again")
		}
		return call.Target{}, f.absent(ref.Client)
	}
	if l := f.leases[ref.Client]; l != nil {
		if _, had := l.projects[ref.Project]; had {
			return call.Target{}, unavailable()
		}
	}
	return call.Target{}, fault.New(fault.UnknownProject, "no such Project is known here").WithField("project").
		WithNext("call list_projects")
}

func unavailable() *fault.Error {
	return fault.New(fault.RunnerUnavailable, "the Runner of this Project is not connected").
		WithNext("start it again (webcodex up in the Project's directory, or webcodex runner on its own machine), then call again")
}

// Projects implements call.Fleet.
func (f *Fleet) Projects() []call.ProjectInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[event.ProjectRef]call.ProjectInfo{}
	for ref, p := range f.named {
		all[ref] = call.ProjectInfo{Ref: ref, Project: ref.String(), Name: p.Name, Root: p.Root}
	}
	for c, l := range f.leases {
		for id, p := range l.projects {
			ref := event.ProjectRef{Client: c, Project: id}
			all[ref] = call.ProjectInfo{Ref: ref, Project: ref.String(), Name: p.Name, Root: p.Root, Git: &p.Git, Connected: l.connected}
		}
	}
	out := make([]call.ProjectInfo, 0, len(all))
	for _, p := range all {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b call.ProjectInfo) int { return strings.Compare(a.Project, b.Project) })
	return out
}

// Ask implements call.Fleet.
func (f *Fleet) Ask(ctx context.Context, t call.Target, op wire.Op, body json.RawMessage, timeout time.Duration) (json.RawMessage, error) {
	if err := f.lacks(t, op); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout+readMargin)
	defer cancel()
	id := event.NewExecutionID()
	reply, err := f.link.Read(ctx, t.Ref.Client, wire.Read{ID: id, Op: op, Body: body, TimeoutMS: timeout.Milliseconds(),
		Fence: wire.Fence{Client: t.Ref.Client, Instance: t.Instance, Project: t.Ref.Project, Root: t.Root}})
	switch {
	case errors.Is(err, server.ErrGone):
		f.gone(t.Ref.Client)
		return nil, unavailable()
	case errors.Is(err, context.Canceled):
		go func() { _, _ = f.Cancel(context.Background(), t.Ref.Client, id, "cancelled") }()
		return nil, fault.Wrap(err, fault.Cancelled, "the call was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fault.Wrap(err, fault.Timeout, "the Runner did not answer in time")
	case err != nil:
		return nil, fault.Wrap(err, fault.RunnerUnavailable, "the Runner could not be asked")
	case reply.Fault != nil:
		return nil, tameFault(reply.Fault)
	}
	return reply.Body, nil
}

// Query implements call.Fleet.
func (f *Fleet) Query(ctx context.Context, c event.ClientID, id event.ExecutionID) (wire.QueryReply, error) {
	reply, err := f.query(ctx, c, id)
	if errors.Is(err, server.ErrGone) && f.returned(ctx, c) {
		reply, err = f.query(ctx, c, id)
	}
	if errors.Is(err, server.ErrGone) {
		return reply, unavailable()
	}
	if err != nil {
		return reply, fault.Wrap(err, fault.RunnerUnavailable, "the Runner could not be asked")
	}
	return reply, nil
}

// Cancel implements call.Fleet.
func (f *Fleet) Cancel(ctx context.Context, c event.ClientID, id event.ExecutionID, reason string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	ack, err := f.link.Cancel(ctx, c, wire.Cancel{ID: id, Reason: reason})
	if errors.Is(err, server.ErrGone) {
		f.gone(c)
		return false, unavailable()
	}
	if err != nil {
		return false, fault.Wrap(err, fault.RunnerUnavailable, "the Runner could not be asked")
	}
	return ack.OK, nil
}

// Digest implements call.Fleet.
func (f *Fleet) Digest(o wire.Offer) string { return wire.Digest(f.key, o) }

func validProject(r event.ProjectRef) bool {
	parsed, ok := event.ParseProject(r.String())
	return ok && parsed == r
}

// clip bounds a name that a Runner tells and takes control characters out of it.
func clip(s string) string {
	var b strings.Builder
	n := 0
	for _, c := range strings.ToValidUTF8(s, "?") {
		if n++; n > maxName {
			break
		}
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			c = '?'
		}
		b.WriteRune(c)
	}
	return b.String()
}
