package runner

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/internal/sandbox"
	"webcodex/runner/link/client"
	"webcodex/runner/supervise"
	"webcodex/runner/wire"
)

// Parser reads a process's standard output as it streams and says what it saw.
type Parser interface {
	Write(p []byte)
	Report() wire.TestReport
}

// Options of New.
type Options struct {
	// Dir is the Runner's own directory, created 0700: journal, Project ids, keys.
	Dir string
	// Deny lists directories no Project may contain or lie in: the data and config directories.
	Deny []string
	// AllowedRoots lists the directories below which callers may have Projects (Allowed). Empty:
	// there are only those that the owner names (AddProject).
	AllowedRoots []string
	// ProjectsFile is the owner's file of further allowed roots and of Projects; it is followed while
	// the Runner serves. Empty: there is none.
	ProjectsFile string
	// Client names this Runner.
	Client event.ClientID
	// Server is the key of the server that this Runner enrolled at: what is not signed with it is
	// refused (AUTH-19). Nil: the server is this process.
	Server ed25519.PublicKey
	// Told hears of each answer to a hello, and of its failure; may be nil.
	Told func(wire.HelloReply, error)
	// Build is the program's version, for people.
	Build string
	// Fsync makes the journal durable against a power cut (durability always): an id's start
	// before the start, its end before the end is told.
	Fsync bool
	// Jobs is how many Jobs run at once, 1 to MaxJobs; 0: DefaultJobs.
	Jobs int
	// Parsers finds the parser that ProcessIn.Parser names; nil knows none.
	Parsers func(kind string) (Parser, bool)
	// Tree tells the commit and the identity of a root's files, for runs that ask for it
	// (ProcessIn.Bind); nil: nobody can.
	Tree func(context.Context, *os.Root) event.Binding
	// Supervisor starts the process that keeps a detached Job: the program's path, then its
	// arguments from its own name on; it runs supervise.Main. Nil: this Runner detaches none.
	Supervisor []string
	Logger     *slog.Logger
	// Now is the wall clock of journal entries; nil: time.Now.
	Now func() time.Time
}

// Runner is one life of a Runner.
type Runner struct {
	o       Options
	effects map[wire.Op]operation
	reads   map[wire.Op]operation
	remotes map[wire.Op]remoteOp

	instance event.InstanceID
	started  time.Time
	journal  *journal
	projects *registry
	scripts  scriptDir
	running  chan struct{}
	bootTime func() time.Duration // counts sleep

	mu       sync.Mutex
	link     server
	announce func()
	execs    map[event.ExecutionID]*execution
	reading  map[event.ExecutionID]context.CancelFunc
	queue    queue
	guard    *supervise.Guard // ends what runs where this process dies
	// endedJobs are those that took a slot, ended all others.
	ended, endedJobs shelf
	stopping         bool
	work             sync.WaitGroup
	owed             map[event.ExecutionID]wire.Result // ends of an earlier life, not yet acknowledged
	adopted          []adopted                         // Jobs of an earlier life, until they are followed

	presence presence
	removed  []func(event.ProjectID)
	closing  []func()
	wide     *Project // stands where an op has no Project
	// entering is held while a Project of a caller comes or goes.
	entering sync.Mutex
	trouble  string // what the owner should look at; empty: nothing
	// troubleText is the same as a sentence.
	troubleText string
}

// server is what an execution needs of the link. It is the seam through which tests drop,
// delay and repeat messages.
type server interface {
	Claim(context.Context, wire.Claim) (wire.ClaimReply, error)
	Started(wire.Started)
	Result(context.Context, wire.Result) (wire.Ack, error)
}

// New makes a Runner that serves nothing yet: register ops, add Projects, then Serve. It
// closes what an earlier life left open in the journal and ends the processes that it left
// running, before any Project can be served.
func New(o Options) (*Runner, error) {
	if !o.Client.Valid() {
		return nil, fault.New(fault.InvalidArguments, "a client id is 1 to 64 of a-z, 0-9, _ and -").WithField("client")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the Runner's directory cannot be created")
	}
	j, err := openJournal(o.Dir, o.Fsync, o.Now)
	if err != nil {
		if errors.Is(err, errJournalBusy) {
			return nil, fault.Wrap(err, fault.Conflict, "another Runner uses this directory")
		}
		if errors.Is(err, errAside) {
			return nil, fault.Wrap(err, fault.Unavailable, "the Runner's journal is damaged, and so are the %d that were set aside before", maxAside).
				WithNext("look at the disk, then move the files runner/journal/log.damaged.* away")
		}
		return nil, fault.Wrap(err, fault.Unavailable, "the Runner's journal cannot be opened")
	}
	r := &Runner{o: o, effects: map[wire.Op]operation{}, reads: map[wire.Op]operation{},
		remotes: map[wire.Op]remoteOp{}, instance: event.NewInstanceID(),
		started: o.Now(), journal: j, running: make(chan struct{}, maxRunning), bootTime: proc.BootTime, execs: map[event.ExecutionID]*execution{}, reading: map[event.ExecutionID]context.CancelFunc{}}
	r.queue.slots, r.guard = jobSlots(o.Jobs), supervise.NewGuard(o.Supervisor)
	r.ended, r.endedJobs = shelf{count: keptEnded, bytes: keptJobBytes}, shelf{count: keptJobs, bytes: keptJobBytes}
	j.onShorten = r.shortened
	if j.aside != "" {
		o.Logger.Error("the Runner's journal was damaged; it was set aside, and what its lost lines would prove has an unknown outcome",
			"file", "runner/journal/"+j.aside, "open", j.owing()+len(j.doubted))
	}
	if r.owed, err = r.recover(); err == nil {
		r.projects, err = openRegistry(o.Dir, o.Deny)
	}
	if err == nil {
		r.projects.policy.allow(o.AllowedRoots)
		sandbox.Protect(r.projects.policy.deny...)
	}
	if err == nil {
		err = r.scripts.open(o.Dir)
	}
	if err != nil {
		_ = j.close()
		return nil, fault.Wrap(err, fault.Unavailable, "the Runner's directory cannot be used")
	}
	r.wide = &Project{}
	r.registerOwn()
	Read(r, wire.OpObserveJobs, r.observeJobs)
	Read(r, wire.OpJobStates, r.jobStates)
	Read(r, wire.OpJobLog, r.jobLog)
	return r, nil
}

// Dir is the Runner's own directory: a handler may keep notes of its own in a directory of it.
func (r *Runner) Dir() string { return r.o.Dir }

// Durable reports that what is kept must outlive a power cut (Options.Fsync).
func (r *Runner) Durable() bool { return r.o.Fsync }

// Instance names this life.
func (r *Runner) Instance() event.InstanceID { return r.instance }

// sayHello tells the server soon that something of this Runner has changed.
func (r *Runner) sayHello() {
	r.mu.Lock()
	announce := r.announce
	r.mu.Unlock()
	if announce != nil {
		announce()
	}
}

// shortened follows a shortening of the journal: its new generation goes to the server.
func (r *Runner) shortened(err error) {
	if err != nil {
		r.o.Logger.Error("the journal could not be shortened", "cause", err)
		return
	}
	r.sayHello()
}

// Serve connects to the server and serves until ctx ends. Then it takes nothing new, ends what
// runs, tells the server the ends, and returns. It may be called once.
func (r *Runner) Serve(ctx context.Context, nc *client.Conn) error {
	link := client.New(nc, r.o.Client, r.o.Server)
	r.mu.Lock()
	r.link, r.announce = link, link.Announce
	r.mu.Unlock()
	linkCtx, unlink := context.WithCancel(context.WithoutCancel(ctx))
	defer r.stand(linkCtx)()
	r.followAdopted(linkCtx)
	defer unlink()
	stop := context.AfterFunc(ctx, func() {
		r.drain()
		unlink()
	})
	defer stop()
	go func() {
		select {
		case <-link.Accepted():
			r.tellOwed(linkCtx)
		case <-linkCtx.Done():
		}
	}()
	err := link.Serve(linkCtx, r.hello, client.Handlers{
		Offer:  func(o wire.Offer) wire.OfferReply { return r.offer(linkCtx, o) },
		Query:  r.query,
		Cancel: r.cancel,
		Read:   r.read,
	}, r.greeted)
	if err != nil && ctx.Err() == nil {
		r.drain()
	}
	return err
}

func (r *Runner) greeted(reply wire.HelloReply, err error) {
	r.heard(reply, err)
	if r.o.Told != nil {
		r.o.Told(reply, err)
		return
	}
	switch {
	case err != nil:
		r.o.Logger.Debug("hello was not answered", "cause", err)
	case !reply.OK:
		r.o.Logger.Warn("the server refused this Runner", "reason", reply.Reason)
	}
}

// drain ends everything and waits until it has ended and been told, or time is over.
func (r *Runner) drain() {
	r.mu.Lock()
	r.stopping = true
	for _, e := range r.execs {
		e.stop(reasonShutdown)
	}
	r.mu.Unlock()
	r.leave()
	done := make(chan struct{})
	go func() { r.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(drainTime):
	}
}

// Close gives the directory free. Call it after Serve has returned.
func (r *Runner) Close() error {
	r.drain()
	for _, end := range r.closing {
		end()
	}
	r.guard.Close()
	r.scripts.close()
	r.projects.close()
	return r.journal.close()
}

func (r *Runner) hello() wire.Hello {
	now := r.journal.current()
	h := wire.Hello{Protocol: wire.Protocol, Client: r.o.Client, Instance: r.instance, StartedAt: event.FormatTime(r.started),
		Build: r.o.Build, OS: runtime.GOOS, Arch: runtime.GOARCH, Capabilities: r.capabilities(),
		Generation: now.Generation, Boot: now.Boot, Jobs: r.journal.unsettled(wire.MaxInventory)}
	for _, p := range r.Projects() {
		if len(h.Projects) < wire.MaxProjects {
			h.Projects = append(h.Projects, announced(p))
		}
	}
	r.mu.Lock()
	h.Trouble, h.Slots = r.trouble, r.slots()
	r.mu.Unlock()
	return h
}

// capabilities are the ops that can be served, sorted.
func (r *Runner) capabilities() []string {
	out := []string{string(wire.OpProcess), string(wire.OpScript), string(wire.OpShell)}
	if r.o.Supervisor != nil {
		out = append(out, string(wire.OpDetached))
	}
	for op := range r.effects {
		out = append(out, string(op))
	}
	for op := range r.reads {
		out = append(out, string(op))
	}
	for op := range r.remotes {
		out = append(out, string(op))
	}
	out = append(out, sandbox.Enforced().Capabilities()...)
	slices.Sort(out)
	return out
}
