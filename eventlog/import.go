package eventlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// ImportOptions of Import. Dir and Server are required.
type ImportOptions struct {
	Dir    string // without a log; created 0700
	Server event.InstanceID
	Now    func() time.Time
	Logger *slog.Logger
	// Want is the span that the copy has to have.
	Want Span
	// Bytes is what the bodies take together; the budget is settled from it and the free space.
	Bytes int64
}

// Import makes a log out of the bodies of another one, with the same sequences, versions and
// hashes, and commits that a new history begins after them. Next gives them in order, each good
// until the next one, and ends with io.EOF. The directory is good for nothing until Import returns nil; after an error it is
// to be thrown away. Errors: fault log_damaged where the copy is not what Want says,
// storage_full, conflict where the directory has a log, unavailable, next's own.
func Import(ctx context.Context, o ImportOptions, next func() ([]byte, error)) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := importBodies(ctx, o, next); err != nil {
		return err
	}
	// The ordinary way in checks all of it again, and makes it durable.
	l, err := Open(ctx, Options{Dir: o.Dir, Durability: Always, Server: o.Server, Now: o.Now, Logger: o.Logger})
	if err != nil {
		return err
	}
	return errors.Join(l.restored(ctx, o.Want), l.Close())
}

// restored begins the history of the copy.
func (l *Log) restored(ctx context.Context, from Span) error {
	agg := event.LogAggregate()
	head, err := l.Head(agg)
	if err != nil {
		return err
	}
	_, err = l.Append(ctx, Draft{ID: event.NewCommandID(), Aggregate: agg, Expect: head, At: l.opts.Now(),
		Actor: event.Actor{Credential: "system"}, Reserve: true,
		Events: []event.Event{event.LogRestored{Epoch: event.NewNonce(), From: from.Epoch, LastSeq: from.Last}}})
	return err
}

// importBodies writes the bodies into a fresh stream.
func importBodies(ctx context.Context, o ImportOptions, next func() ([]byte, error)) (err error) {
	d, err := openDir(o.Dir, false)
	if err != nil {
		return err
	}
	defer d.close()
	budget, err := d.importBudget(o)
	if err != nil {
		return err
	}
	auth := newAuthority(o.Logger)
	failed := make(chan struct{}, 1)
	srv, err := startServer(d.store(), Process, RunnerListen{}, auth, &serverLog{log: o.Logger, writeError: func() {
		select {
		case failed <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the embedded log server did not start")
	}
	stop := func() { srv.Shutdown(); srv.WaitForShutdown() }
	nc, err := auth.connect(grant{"import", accountLog, everything()})
	if err != nil {
		stop()
		return fault.Wrap(err, fault.Unavailable, "the embedded log server does not answer")
	}
	err = feedImport(ctx, nc, o.Want, budget, next)
	nc.Close()
	stop()
	select {
	case <-failed:
		err = errors.Join(err, storageFull())
	default:
	}
	if err != nil {
		return err
	}
	if _, err := syncFrom(d.blocks(), 0); err != nil {
		return fault.Wrap(err, fault.PersistenceUncertain, "the disk did not confirm the restored log")
	}
	if err := d.syncMeta(); err != nil {
		return fault.Wrap(err, fault.PersistenceUncertain, "the disk did not confirm the restored log")
	}
	return nil
}

// importBudget refuses a directory that has a log and a disk that has no room, and settles the
// budget of the new one.
func (d *dir) importBudget(o ImportOptions) (int64, error) {
	if f, err := d.readFormat(); err != nil || f.Format != 0 {
		return 0, fault.Wrap(err, fault.Conflict, "there is a log in this directory already")
	}
	free, ok := freeSpace(d.path)
	if !ok {
		return 0, fault.New(fault.Unavailable, "the free space of the directory cannot be told")
	}
	records := o.Bytes + int64(o.Want.Last-o.Want.First+1)*importOverhead
	budget := max(minBudget, int64(float64(free)*budgetShare))
	if records > budget-budget/reserveShare || free-records < minFree {
		return 0, storageFull()
	}
	if err := os.MkdirAll(d.store(), 0o700); err != nil {
		return 0, fault.Wrap(err, fault.Unavailable, "the directory cannot be written")
	}
	if err := d.writeFile(formatName, format{Format: FormatVersion, MaxBytes: budget}); err != nil {
		return 0, fault.Wrap(err, fault.Unavailable, "the directory cannot be written")
	}
	return budget, nil
}

// feedImport publishes the bodies at the sequences they had.
func feedImport(ctx context.Context, nc *nats.Conn, want Span, budget int64, next func() ([]byte, error)) error {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(window))
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the embedded log server does not answer")
	}
	cfg := streamConfig(budget)
	if want.First > 1 {
		cfg.FirstSeq = want.First
	}
	if _, err := js.CreateStream(ctx, cfg); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the log's stream cannot be made")
	}
	check := NewCheck(want.First)
	var flying []jetstream.PubAckFuture
	oldest := want.First // of those flying
	settle := func(keep int) error {
		for ; len(flying) > keep; oldest++ {
			if err := importAck(ctx, flying[0], oldest); err != nil {
				return err
			}
			flying = flying[1:]
		}
		return nil
	}
	for at := want.First; ; at++ {
		body, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if at > want.Last {
			return notTheCopy()
		}
		agg, err := check.Add(body)
		if err != nil {
			return err
		}
		f, err := js.PublishMsgAsync(&nats.Msg{Subject: subjectOf(agg), Data: bytes.Clone(body),
			Header: nats.Header{jetstream.ExpectedLastSeqHeader: {strconv.FormatUint(at-1, 10)}}})
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "the restored log cannot be written")
		}
		if flying = append(flying, f); len(flying) == window {
			if err := settle(window / 2); err != nil {
				return err
			}
		}
	}
	if err := settle(0); err != nil {
		return err
	}
	got, err := check.End()
	if err != nil {
		return err
	}
	if got != want {
		return notTheCopy()
	}
	// The stream's own settings, as an ordinary start makes them.
	if _, err := js.UpdateStream(ctx, streamConfig(budget)); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the log's stream cannot be made")
	}
	return nil
}

func importAck(ctx context.Context, f jetstream.PubAckFuture, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	select {
	case ack := <-f.Ok():
		if ack.Sequence != seq {
			return fault.New(fault.Internal, "commit %d was written as %d", seq, ack.Sequence)
		}
		return nil
	case err := <-f.Err():
		return fault.Wrap(err, fault.StorageFull, "commit %d could not be written", seq).WithNext("free disk space and restore again")
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.StorageFull, "commit %d was not confirmed", seq).WithNext("free disk space and restore again")
	}
}

func notTheCopy() error {
	return fault.New(fault.LogDamaged, "the copy of the log is not the one that its manifest describes").
		WithReason(damageForeign).WithNext("use another backup")
}
