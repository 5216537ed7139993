package history

import (
	"context"
	"errors"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Source gives an aggregate's state as it is now, to be brought forward in its own commits,
// and the form it has. False: the aggregate is none of its own.
type Source func(ctx context.Context, a event.Aggregate) (form int, state []byte, ok bool, err error)

// Carrier brings living state forward.
type Carrier struct {
	writer  *aggregate.Writer
	sources []Source
	actor   event.Actor
}

// NewCarrier makes a Carrier over the sources of every domain.
func NewCarrier(w *aggregate.Writer, sources ...Source) *Carrier {
	return &Carrier{writer: w, sources: sources, actor: event.Actor{Credential: "system"}}
}

// errInterrupted tells that another commit came between the parts of a state.
var errInterrupted = errors.New("the record changed between the parts of its state")

// Carry writes the aggregate's state into the log again, in parts that are commits of its own,
// and tells the bytes that they take. When it returns without an error the commits before the
// first part are needed no more. Callers of the aggregate wait for one commit at most, but for
// the last attempt at a state in several parts, which holds its lock over all of them. Errors:
// fault unavailable for a state that cannot be carried; the log's own.
func (c *Carrier) Carry(ctx context.Context, a event.Aggregate) (int64, error) {
	var err error
	for n := range carryAttempts {
		var bytes int64
		bytes, err = c.attempt(ctx, a, n == carryAttempts-1)
		if !errors.Is(err, errInterrupted) && !errors.Is(err, eventlog.ErrConflict) {
			return bytes, err
		}
	}
	return 0, err
}

func (c *Carrier) attempt(ctx context.Context, a event.Aggregate, hold bool) (int64, error) {
	cmd := aggregate.Command{Aggregate: a, Actor: c.actor, Reserve: true}
	var parts []event.CarriedPart
	read := func(_ time.Time, head eventlog.Head) (out [][]event.Event, err error) {
		if parts, err = c.parts(ctx, a); err != nil {
			return nil, err
		}
		for i := range parts {
			parts[i].Of = head.Version
		}
		n := 1
		if hold {
			n = len(parts)
		}
		for _, p := range parts[:n] {
			out = append(out, []event.Event{event.CarriedEvent(a.Domain, p)})
		}
		return out, nil
	}
	receipts, err := c.writer.DoSeries(ctx, cmd, read)
	if err != nil {
		return 0, err
	}
	bytes := size(parts[:len(receipts)])
	version := receipts[len(receipts)-1].Commit.Version
	for _, p := range parts[len(receipts):] {
		r, err := c.writer.Do(ctx, cmd, func(time.Time) ([]event.Event, error) {
			return []event.Event{event.CarriedEvent(a.Domain, p)}, nil
		})
		if err != nil {
			return 0, err
		}
		if version++; r.Commit.Version != version {
			return 0, errInterrupted
		}
		bytes += size([]event.CarriedPart{p})
	}
	return bytes, nil
}

// parts reads the state, after the aggregate's end was read: where it is a newer one, the
// first part loses the race.
func (c *Carrier) parts(ctx context.Context, a event.Aggregate) ([]event.CarriedPart, error) {
	for _, s := range c.sources {
		form, state, ok, err := s(ctx, a)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		parts, err := event.SplitState(form, state)
		if err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "the state of %s cannot be carried forward", a.Domain).WithReason("state_too_big")
		}
		return parts, nil
	}
	return nil, fault.New(fault.Unavailable, "a record of %s has no state that could be carried forward", a.Domain).WithReason("no_state")
}

// envelope is about what a part's commit takes beside its data.
const envelope = 1024

func size(parts []event.CarriedPart) int64 {
	n := int64(0)
	for _, p := range parts {
		n += int64(len(p.Data)) + envelope
	}
	return n
}
