package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/history"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// offlineLog is a data directory that no server has open, for a command that has to write.
type offlineLog struct {
	dir    string
	log    *eventlog.Log
	models *models
	pruner *history.Pruner // for what a person asks for: it has no policy
}

// openOffline opens the log under its lock.
func openOffline(ctx context.Context, dir string) (*offlineLog, error) {
	if err := mayOpen(dir); err != nil {
		return nil, err
	}
	o := &offlineLog{dir: dir, models: newModels(dir, 0, slog.New(slog.DiscardHandler))}
	var err error
	o.log, err = eventlog.Open(ctx, eventlog.Options{Dir: dir, Durability: eventlog.Always, Reason: "an offline command", Witness: witness(ctx, dir),
		Server: event.NewInstanceID(), Now: time.Now, Base: o.models.keeper})
	if errors.Is(err, eventlog.ErrLocked) {
		return nil, held(dir)
	}
	if err != nil {
		return nil, err
	}
	o.models.serve(o.log)
	o.pruner = newPruner(o.log, aggregate.NewWriter(o.log, time.Now), o.models, history.Policy{}, 0, nil)
	return o, nil
}

func (o *offlineLog) close() error { return o.log.Close() }
