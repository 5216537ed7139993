package call

import (
	"context"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// nameRecorder finds the Session that the caller wants the call recorded in and checks the
// caller's authority over it, on its own and before anything else is looked at (REC-03). It is
// provenance: what the call works on, the guards and the defaults never come from it (REC-08).
func (c *Call) nameRecorder(ctx context.Context) error {
	if c.req.Envelope.Record == "" {
		return nil
	}
	core, err := c.Authorised(ctx, c.req.Envelope.Record)
	if err != nil {
		return c.ofRecorder(fault.As(err))
	}
	if core.Lifecycle != session.Active {
		return c.ofRecorder(fault.New(fault.SessionClosed, "the Session to record this call in is closed; nothing was done").
			WithNext("leave it out, or record into an open Session")) // REC-15
	}
	c.Recorder = &core
	return nil
}

// ofRecorder says that a refusal is about the recorder, under the name that the edge gave it.
func (c *Call) ofRecorder(f *fault.Error) *fault.Error {
	f.Field = c.req.Envelope.Field
	return f
}

// matchRecorder holds a recorder that has a Project equal to the request's (REC-09). Between
// two Sessions nothing but exactly the same scope will do, none at all included (REC-10).
func (c *Call) matchRecorder() error {
	if c.Recorder == nil {
		return nil
	}
	own := c.Recorder.Project
	between := c.Session != nil && c.req.Spec.Plane == PlaneSession
	if between && own != c.Session.Project || c.Project != nil && !own.Zero() && own != c.Project.Ref {
		return c.mismatch()
	}
	return nil
}

func (c *Call) mismatch() error {
	return c.ofRecorder(fault.New(fault.SessionProjectMismatch, "the Session to record this call in belongs to another Project").
		WithNext("record into a Session of the same Project, or leave the recorder out"))
}

// leg is what one Session keeps of a call: a business pair, a recorder pair, or both, which
// then share each commit. They have the invocation in common and a call id each (EVT-08).
type leg struct {
	id                 event.SessionID
	business, recorder bool
	opened             bool // the start is committed
	ended              bool // it takes nothing more of this call
}

// trace finds the Sessions that keep this call. The one it works on leads: its commit is the
// decision, the recorder's follows (faults.md 2.9).
func (c *Call) trace() {
	if c.records() {
		c.legs = append(c.legs, &leg{id: c.Session.ID, business: true})
	}
	switch {
	case c.Recorder == nil || c.nested:
	case len(c.legs) > 0 && c.legs[0].id == c.Recorder.ID:
		c.legs[0].recorder = true
	default:
		c.legs = append(c.legs, &leg{id: c.Recorder.ID, recorder: true})
	}
}

// start begins every leg before an effect. A Session that was closed or narrowed since
// admission refuses; what another one has begun then gets its end with the call's.
func (c *Call) start(ctx context.Context, x *event.Execution) error {
	for _, l := range c.legs {
		if err := c.begin(ctx, l, x, false); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) begin(ctx context.Context, l *leg, x *event.Execution, reserve bool) error {
	if l.opened || l.ended {
		return nil
	}
	_, err := c.append(ctx, l, reserve, func(now time.Time) ([]event.Event, error) {
		core, err := c.active(l)
		if err != nil {
			return nil, err
		}
		if l.business {
			if denied := c.denial(core.Guards); denied != nil {
				return nil, denied
			}
		}
		return c.startEvents(l, x, now), nil
	})
	l.opened = err == nil
	return err
}

// active is the Session of a leg as it is under its lock, or the refusal of one that was
// closed or removed meanwhile.
func (c *Call) active(l *leg) (session.Core, error) {
	core, err := c.kernel.cfg.Sessions.Target(l.id)
	if err != nil && fault.KindOf(err) != fault.UnknownSessionID {
		return session.Core{}, err
	}
	if core.Lifecycle == session.Active {
		return core, nil
	}
	if l.business {
		return session.Core{}, fault.New(fault.SessionClosed, "this Session was closed meanwhile; nothing was started")
	}
	return session.Core{}, c.ofRecorder(fault.New(fault.SessionClosed, "the Session to record this call in was closed meanwhile; nothing was done"))
}

// open begins the recorder's pair before the call changes anything by a decision of its own:
// a recorder that was closed meanwhile still stops it (REC-15), and a crash leaves its trace.
func (c *Call) open(ctx context.Context, reserve bool) error {
	for _, l := range c.legs {
		if !l.recorder {
			continue
		}
		if err := c.begin(ctx, l, nil, reserve); err != nil {
			return err
		}
	}
	return nil
}

// end gives every leg its end: in one commit with the start where that was not needed before.
// It gives the event that the answer names: the business one before the recorder's.
func (c *Call) end(ctx context.Context, res Result, f *fault.Error) (event.EventID, error) {
	var id event.EventID
	var failed error
	for _, l := range c.legs {
		l.ended = true
		receipt, err := c.append(ctx, l, true, func(now time.Time) ([]event.Event, error) {
			ends := c.finishEvents(l, res, f, now)
			if l.opened {
				return ends, nil
			}
			core, gone := c.kernel.cfg.Sessions.Target(l.id)
			if gone != nil && fault.KindOf(gone) != fault.UnknownSessionID {
				return nil, gone
			}
			if core.Lifecycle != session.Active {
				return nil, nil // closed or removed meanwhile: it takes no pair any more (ruling 3)
			}
			return append(c.startEvents(l, nil, now), ends...), nil
		})
		switch {
		case err != nil && failed == nil:
			failed = err
		case err == nil && receipt.Seq > 0:
			c.kernel.atRest(ctx, l.id) // it may have been closed while this call was open
			if id == "" {
				id = event.TailEventID(receipt.Commit.Aggregate, receipt.Commit.Version, firstEnd(receipt.Commit.Events))
			}
		}
	}
	return id, failed
}

func firstEnd(events []event.Event) int {
	for i, e := range events {
		if _, is := e.(event.ToolCallFinished); is {
			return i
		}
	}
	return len(events) - 1
}

// append writes evidence into a leg's Session. Evidence of work that happened may use the
// reserve, so that a full disk never hides what was done.
func (c *Call) append(ctx context.Context, l *leg, reserve bool, decide aggregate.Decide) (eventlog.Receipt, error) {
	return c.kernel.writer.Do(ctx, aggregate.Command{Aggregate: event.SessionAggregate(l.id),
		Actor: c.Principal.Actor, Invocation: c.Invocation, Reserve: reserve}, decide)
}

// opened reports whether any leg has begun.
func (c *Call) opened() bool {
	for _, l := range c.legs {
		if l.opened {
			return true
		}
	}
	return false
}

// startEvents are the starts of a leg, the outer one first.
func (c *Call) startEvents(l *leg, x *event.Execution, now time.Time) []event.Event {
	var out []event.Event
	if l.recorder {
		out = append(out, c.startEvent(event.RoleRecorder, x, now))
	}
	if l.business {
		out = append(out, c.startEvent(event.RoleBusiness, x, now))
	}
	return out
}

// finishEvents are the ends of a leg, the outer one last.
func (c *Call) finishEvents(l *leg, res Result, f *fault.Error, now time.Time) []event.Event {
	var out []event.Event
	if l.business {
		out = append(out, c.finishEvent(event.RoleBusiness, res, f, now))
	}
	if l.recorder {
		out = append(out, c.finishEvent(event.RoleRecorder, res, f, now))
	}
	return out
}

// callID is the id of the pair in the role.
func (c *Call) callID(r event.Role) event.CallID {
	if r == event.RoleRecorder {
		return c.recorderID
	}
	return c.ID
}
