package retention

import (
	"context"
	"math"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// Remove removes one Closed Session now, because an operator asks for it, whatever the limit.
// It drops no tombstone of another one for that: the next Run does, by the limit of its server.
// One that is removed already is no error. Errors: fault conflict for one that is Active or
// has open calls or Jobs; the log's own.
func (r *Remover) Remove(ctx context.Context, id event.SessionID) error {
	cmd := aggregate.Command{Aggregate: event.RetentionAggregate(), Actor: event.Actor{Credential: "system"}, Reserve: true}
	_, err := r.o.Writer.Do(ctx, cmd, func(time.Time) ([]event.Event, error) {
		core, ok := r.removable(id)
		if !ok {
			if _, gone := r.o.Tombstones.Find(id); gone {
				return nil, nil
			}
			return nil, fault.New(fault.Conflict, "the Session is not closed").WithNext("close it first")
		}
		if !MayRemove(core) {
			return nil, fault.New(fault.Conflict, "the Session has calls or Jobs without an end").
				WithNext("start the server once: it gives them their end")
		}
		return Decide(r.o.Tombstones.Standing(maxDropped), []session.Core{core}, math.MaxInt), nil
	})
	return err
}
