package access

import (
	"context"
	"errors"
	"slices"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/access"
)

// errTurned tells that the next number lies on another page than the decision is made on.
var errTurned = errors.New("the page is full")

// Reserve takes the caller's next number of a kind, for a Session that does not exist yet: its
// own commit binds it, and where that never comes the number stays a gap (SES-11). 0: this
// server keeps no refs, or the caller's are used up or damaged. Errors: the log's own.
func Reserve(ctx context.Context, c *call.Call, kind event.RefKind) (uint64, error) {
	var number uint64
	err := onPage(ctx, c, kind, func(last uint64) ([]event.Event, error) {
		number = last + 1
		return []event.Event{event.RefReserved{Principal: c.Principal.Actor.Principal, Kind: kind, Number: number}}, nil
	})
	if err != nil {
		return 0, skippable(err)
	}
	return number, nil
}

// Number gives the refs under which the caller knows the targets, in their order. Those that
// have none get one, in one commit where a page of numbers has room for them (SES-18, ruling
// 13). Empty: there is none to be had now; a read goes on without it.
func Number(ctx context.Context, c *call.Call, kind event.RefKind, targets ...access.Target) []string {
	out := make([]string, len(targets))
	if c.Refs() == nil {
		return out
	}
	for range targets {
		left, err := find(ctx, c, kind, targets, out)
		if err != nil || len(left) == 0 {
			return out
		}
		err = onPage(ctx, c, kind, func(last uint64) ([]event.Event, error) {
			// Another call may have numbered some of them meanwhile.
			if left, err = find(ctx, c, kind, targets, out); err != nil {
				return nil, err
			}
			return Bind(c.Principal.Actor.Principal, kind, last, left), nil
		})
		if err != nil {
			return out
		}
	}
	_, _ = find(ctx, c, kind, targets, out)
	return out
}

// find fills in the refs that there are and gives the targets without one, each once.
func find(ctx context.Context, c *call.Call, kind event.RefKind, targets []access.Target, out []string) ([]access.Target, error) {
	var left []access.Target
	for i, t := range targets {
		n, err := c.Refs().Find(ctx, c.Principal.Actor.Principal, kind, t)
		switch {
		case err != nil:
			return nil, err
		case n > 0:
			out[i] = kind.Ref(n)
		case !slices.Contains(left, t):
			left = append(left, t)
		}
	}
	return left, nil
}

// Bind gives the events that number the targets behind last: as many as the page of the next
// number holds.
func Bind(principal string, kind event.RefKind, last uint64, targets []access.Target) []event.Event {
	var events []event.Event
	for i, t := range targets {
		n := last + 1 + uint64(i)
		if n > event.MaxRefNumber || (n-1)/event.RefsPage != last/event.RefsPage {
			break
		}
		events = append(events, event.RefBound{Principal: principal, Kind: kind, Number: n, Session: t.Session, Project: t.Project, Pin: t.Pin})
	}
	return events
}

// onPage decides on the page of the caller's next number, with the greatest number given so
// far. The page is the unit of consistency: two calls never get one number.
func onPage(ctx context.Context, c *call.Call, kind event.RefKind, decide func(last uint64) ([]event.Event, error)) error {
	if c.Refs() == nil {
		return errNone
	}
	principal := c.Principal.Actor.Principal
	for {
		last, err := c.Refs().Last(ctx, principal, kind)
		if err != nil {
			return fault.Wrap(err, fault.LogDamaged, "the numbers of refs could not be read")
		}
		if last >= event.MaxRefNumber {
			return errNone
		}
		page := event.RefsAggregate(principal, kind, last+1)
		_, err = c.Decide(ctx, page, func(time.Time) ([]event.Event, error) {
			now, err := c.Refs().Last(ctx, principal, kind)
			switch {
			case err != nil:
				return nil, fault.Wrap(err, fault.LogDamaged, "the numbers of refs could not be read")
			case event.RefsAggregate(principal, kind, now+1) != page || now >= event.MaxRefNumber:
				return nil, errTurned
			}
			if err := untouched(c, page, now); err != nil {
				return nil, err
			}
			return decide(now)
		})
		if !errors.Is(err, errTurned) {
			return err
		}
	}
}

// untouched refuses to begin a page that the log has commits of: then the read model has
// forgotten numbers, and one of them would be given twice.
func untouched(c *call.Call, page event.Aggregate, last uint64) error {
	if last%event.RefsPage != 0 {
		return nil
	}
	head, err := c.Head(page)
	if err == nil && head.Version > 0 {
		err = fault.New(fault.LogDamaged, "the numbers of refs are not those of the log")
	}
	return err
}

// errNone tells that no ref is to be had.
var errNone = errors.New("no refs")

// skippable is nil for what must not keep a Session from starting: it has its id.
func skippable(err error) error {
	if errors.Is(err, errNone) || fault.KindOf(err) == fault.LogDamaged {
		return nil
	}
	return err
}
