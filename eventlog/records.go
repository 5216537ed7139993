package eventlog

import (
	"context"
	"runtime"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// record is a message with its commit.
type record struct {
	seq    uint64
	agg    event.Aggregate
	hash   string
	commit event.Commit
	ok     bool // decoded
	size   int
}

func readRecord(m message) (record, error) {
	c, err := event.Decode(m.body)
	r := record{seq: m.seq, agg: c.Aggregate, hash: event.Hash(m.body), size: len(m.body), commit: c, ok: err == nil}
	if r.ok && onSubject(m.subject, c.Aggregate) {
		return r, nil
	}
	agg, ok := aggregateOf(m.subject)
	if !ok {
		return record{}, fault.New(fault.LogDamaged, "sequence %d is stored under a subject that is no record's", m.seq).
			WithReason(damageSubject)
	}
	r.agg = agg
	return r, nil
}

// batch is a run of messages that is decoded at once.
type batch struct {
	messages []message
	records  []record
	err      error // of the message after the last record
	done     chan struct{}
}

func (b *batch) decode() {
	defer close(b.done)
	b.records = make([]record, 0, len(b.messages))
	for _, m := range b.messages {
		r, err := readRecord(m)
		if err != nil {
			b.err = err
			return
		}
		b.records = append(b.records, r)
	}
}

// records gives [from, last] of the log, of one subject or of all (""), in order. Hashing and
// decoding cost more than reading, so they are done ahead, on every core.
func (l *Log) records(ctx context.Context, from, last uint64, subject string, fn func(record) error) error {
	return decoded(ctx, subject, func(ctx context.Context, give func(message) error) error { return l.feed(ctx, from, last, give) }, fn)
}

// decoded gives the records of a feed's messages, in order.
func decoded(ctx context.Context, subject string, feed func(context.Context, func(message) error) error, fn func(record) error) error {
	ctx, cancel := context.WithCancel(ctx)
	workers := min(runtime.GOMAXPROCS(0), decoders)
	order, work := make(chan *batch, 2*workers), make(chan *batch, 2*workers)
	for range workers {
		go func() {
			for b := range work {
				b.decode()
			}
		}()
	}
	var feedErr error
	go func() {
		defer close(order)
		defer close(work)
		feedErr = batches(ctx, subject, feed, func(b *batch) { order <- b; work <- b })
	}()
	err := inOrder(order, fn)
	cancel()
	for range order { // lets the feed end
	}
	if err == nil {
		err = feedErr
	}
	return err
}

func inOrder(order <-chan *batch, fn func(record) error) error {
	for b := range order {
		<-b.done
		for _, r := range b.records {
			if err := fn(r); err != nil {
				return err
			}
		}
		if b.err != nil {
			return b.err
		}
	}
	return nil
}

// batches cuts the feed into runs. What came before an error is still given.
func batches(ctx context.Context, subject string, feed func(context.Context, func(message) error) error, give func(*batch)) error {
	var run []message
	flush := func() {
		if len(run) > 0 {
			give(&batch{messages: run, done: make(chan struct{})})
		}
		run = nil
	}
	err := feed(ctx, func(m message) error {
		if subject != "" && m.subject != subject {
			return nil
		}
		if run == nil {
			run = make([]message, 0, batchSize)
		}
		if run = append(run, m); len(run) == batchSize {
			flush()
		}
		return nil
	})
	flush()
	return err
}
