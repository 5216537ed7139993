package call

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/token"
	"webcodex/projections/access"
	"webcodex/projections/external"
	"webcodex/projections/retention"
	"webcodex/projections/session"
	"webcodex/projections/window"
)

// Config of a Kernel. Log, Sessions, Fleet, Server and Now are required.
type Config struct {
	Log      eventlog.Appender
	Sessions *session.Store
	// Refs are what ~sN and ~pN stand for; nil: this server keeps none.
	Refs *access.Refs
	// Tombstones are of the Sessions that were removed; nil: none ever is.
	Tombstones *retention.Tombstones
	// Windows are what hosts' windows relate to and wrote to each other; nil: none is kept.
	Windows *window.Store
	// Loop tells what was seen of the calls of the caller's window; nil: nothing is.
	Loop func(*Call) window.Loop
	// External are reports of adapters outside; nil: this server takes none.
	External *external.Reports
	// Writer is the one on this log that everything of the process decides with: those who share
	// it wait for each other instead of losing races. Nil: the Kernel makes its own.
	Writer *aggregate.Writer
	// OnClosed is told of a Closed Session that has come to rest, after which there may be one
	// too many; nil: nobody counts. It cannot change the answer of the call that closed it.
	OnClosed func(context.Context, session.Core)
	// OnClosing is told of a Session as soon as its close is in the log, before the answer: what
	// still lives for it is to end (SHL-20); nil: nothing does. It cannot change the answer.
	OnClosing func(context.Context, session.Core)
	Fleet     Fleet
	Server    event.InstanceID
	Now       func() time.Time
	Logger    *slog.Logger
	// OnCall is told of every finished call: for the operator's terminal and for audit. It
	// must not block and cannot change the answer.
	OnCall func(Line)
	// Ambient are asked, in this order, for what an answer is to carry beside its output.
	Ambient []Ambient
	// Tokens seal cursors and fences; nil: with keys that end with this Kernel.
	Tokens *token.Keys
	// Epoch names the log's history; nil: there is but one.
	Epoch func() string
	// Info tells what get_runtime_status shows of the process; nil: next to nothing.
	Info func() ServerInfo
}

// Line is what an operator may see of one call: no argument, no output.
type Line struct {
	Tool     string
	Session  event.SessionID
	Status   string
	Kind     fault.Kind
	Duration time.Duration
}

// Kernel runs calls: it checks authority, keeps the evidence, and reaches Runners. It is
// safe for concurrent use.
type Kernel struct {
	cfg    Config
	fleet  Fleet
	writer *aggregate.Writer

	reconciling [64]sync.Mutex // by Session

	slots *slots
	jobs  *jobTable
	late  drain // ends that come after their call
	drain drain

	ending ending
}

// NewKernel wires a Kernel.
func NewKernel(cfg Config) *Kernel {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Tokens == nil {
		cfg.Tokens = ownTokens()
	}
	if cfg.Writer == nil {
		cfg.Writer = aggregate.NewWriter(cfg.Log, cfg.Now)
	}
	return &Kernel{cfg: cfg, fleet: cfg.Fleet, writer: cfg.Writer,
		slots: newSlots(), jobs: newJobTable()}
}

// Call runs one tool call to its answer. The error is a *fault.Error or nil.
func (k *Kernel) Call(ctx context.Context, req Request) (Response, error) {
	c := &Call{kernel: k, req: req, Args: req.Args, Principal: req.Principal, Transport: req.Transport,
		Invocation: event.NewInvocationID(), ID: event.NewCallID(), recorderID: event.NewCallID(), Started: k.cfg.Now(), settled: make(chan struct{})}
	resp, err := c.do(ctx)
	k.tell(c, resp, err)
	if err != nil {
		return Response{}, fault.As(err)
	}
	return resp, nil
}

func (c *Call) do(ctx context.Context) (Response, error) {
	defer close(c.settled)
	if err := c.kernel.drain.enter(); err != nil {
		return Response{}, err
	}
	defer c.kernel.drain.leave()
	if err := c.kernel.slots.take(c.key()); err != nil {
		return Response{}, err
	}
	defer c.kernel.slots.free(c.key())
	if err := c.admit(ctx); err != nil {
		return Response{}, err
	}
	if err := c.guard(ctx); err != nil {
		return Response{}, err
	}
	res := new(Result)
	err := c.work(ctx, res)
	return c.conclude(ctx, res, err)
}

// work runs the tool between the mutations that travel with it. Results are large and stay off
// the stacks of calls that wait, of which there may be thousands.
func (c *Call) work(ctx context.Context, res *Result) error {
	if err := c.before(ctx); err != nil {
		return err
	}
	return c.run(ctx, res)
}

// conclude records the end, also when the caller has gone, and gives the answer.
func (c *Call) conclude(ctx context.Context, res *Result, err error) (Response, error) {
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return c.finish(keep, *res, err)
}

func (c *Call) run(ctx context.Context, res *Result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.kernel.cfg.Logger.Error("tool panicked", "tool", c.req.Spec.Name, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "the tool failed inside; the details are in the server's log")
		}
	}()
	*res, err = c.req.Spec.Run(ctx, c)
	return err
}

func (k *Kernel) tell(c *Call, resp Response, err error) {
	if err != nil {
		if f := fault.As(err); f.Kind == fault.Internal {
			k.cfg.Logger.Error("call failed inside", "tool", c.req.Spec.Name, "cause", errText(f))
		}
	}
	if k.cfg.OnCall == nil {
		return
	}
	l := Line{Tool: c.req.Spec.Name, Status: event.StatusSucceeded, Duration: k.cfg.Now().Sub(c.Started), Kind: fault.KindOf(err)}
	if err != nil || !resp.Success {
		l.Status = event.StatusFailed
	}
	switch {
	case c.Session != nil:
		l.Session = c.Session.ID
	case c.Recorder != nil:
		l.Session = c.Recorder.ID
	}
	k.cfg.OnCall(l)
}

func errText(f *fault.Error) string {
	if f.Unwrap() != nil {
		return f.Unwrap().Error()
	}
	return f.Message
}

// Sessions gives tools the read models.
func (c *Call) Sessions() *session.Store { return c.kernel.cfg.Sessions }

// External are the reports of adapters outside; nil: this server takes none.
func (c *Call) External() *external.Reports { return c.kernel.cfg.External }

// Server is this server life.
func (c *Call) Server() event.InstanceID { return c.kernel.cfg.Server }

// Fleet gives tools the server's end of the Runner link.
func (c *Call) Fleet() Fleet { return c.kernel.fleet }

// Decide makes one decision on an aggregate on behalf of the caller (commands only).
func (c *Call) Decide(ctx context.Context, a event.Aggregate, decide aggregate.Decide) (eventlog.Receipt, error) {
	if err := c.kernel.cfg.Log.Admit(); err != nil {
		return eventlog.Receipt{}, err
	}
	if err := c.open(ctx, false); err != nil {
		return eventlog.Receipt{}, err
	}
	return c.decided(c.kernel.writer.Do(ctx, aggregate.Command{Aggregate: a, Actor: c.Principal.Actor, Invocation: c.Invocation}, decide))
}

// Settle is Decide for what ends work: it may use the space that is kept for that.
func (c *Call) Settle(ctx context.Context, a event.Aggregate, decide aggregate.Decide) (eventlog.Receipt, error) {
	if err := c.open(ctx, true); err != nil {
		return eventlog.Receipt{}, err
	}
	return c.decided(c.kernel.writer.Do(ctx, aggregate.Command{Aggregate: a, Actor: c.Principal.Actor, Invocation: c.Invocation, Reserve: true}, decide))
}

// decided keeps whether a decision of the call's own stands. One that was sent and that nobody
// vouches for may: its refusal is no proof that nothing changed.
func (c *Call) decided(receipt eventlog.Receipt, err error) (eventlog.Receipt, error) {
	if fault.KindOf(err) == fault.PersistenceUncertain {
		f := *fault.As(err)
		f.StateChanged, err = true, &f
		c.mutated = true
	}
	c.mutated = c.mutated || receipt.Seq > 0
	return receipt, err
}

// Head is where an aggregate's chain ends.
func (c *Call) Head(a event.Aggregate) (eventlog.Head, error) { return c.kernel.cfg.Log.Head(a) }

// Elapsed is how long the call has taken so far, by the server's clock.
func (c *Call) Elapsed() time.Duration { return c.kernel.cfg.Now().Sub(c.Started) }

// HasScope reports whether the caller holds a scope beyond those the Spec demands.
func (c *Call) HasScope(s Scope) bool { return c.Principal.Scopes[s] }
