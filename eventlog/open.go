package eventlog

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Open locks the data directory, starts the embedded server, compares the log with its
// checkpoint, folds it, and takes commits from then on. Errors: fault conflict when another
// process has the directory; log_damaged with a reason code when the log is not the one that
// was written (its files are left as they are); unavailable for everything in the way of a
// start. After an error nothing is held.
func Open(ctx context.Context, o Options) (*Log, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	l := newLog(o)
	if err := l.open(ctx); err != nil {
		l.abandon()
		return nil, err
	}
	return l, nil
}

func newLog(o Options) *Log {
	l := &Log{opts: o, log: o.Logger, auth: newAuthority(o.Logger), boot: bootID(), chain: newChain(o.Base),
		submit: make(chan *entry, window), stop: make(chan struct{}), closing: make(chan struct{}), failed: make(chan struct{})}
	l.evidence = newEvidence(l)
	return l
}

func (o *Options) check() error {
	if o.Durability == "" {
		o.Durability = Always
	}
	if o.Reason == "" {
		o.Reason = "default"
	}
	if !o.Durability.Valid() {
		return fault.New(fault.InvalidArguments, "durability is %q, %q or %q", Always, Group, Process).WithField("durability")
	}
	if o.MaxBytes != 0 && o.MaxBytes < minBudget {
		return fault.New(fault.InvalidArguments, "the log needs a budget of at least %d bytes", minBudget)
	}
	if err := o.Runners.check(); err != nil {
		return err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (l *Log) open(ctx context.Context) error {
	start := time.Now()
	if l.opts.ReadOnly {
		if _, err := os.Stat(l.opts.Dir); err != nil {
			return fault.New(fault.Unavailable, "there is no log in this data directory")
		}
	}
	var err error
	if l.dir, err = openDir(l.opts.Dir, l.opts.ReadOnly); err != nil {
		return err
	}
	if l.dir.fixed {
		return fixedDir()
	}
	f, cp, hasCP, err := l.readState()
	if err != nil {
		return err
	}
	l.fileSystem = FileSystem(l.dir.path)
	if l.opts.ReadOnly && hasCP && cp.Durability.Valid() {
		l.opts.Durability, l.opts.Reason = cp.Durability, "the last server's"
	}
	if l.writes() && !cp.Clean {
		if err := reread(l.dir.blocks(), cp.Block); err != nil {
			return fault.Wrap(err, fault.Unavailable, "the log's blocks cannot be made durable")
		}
	}
	if err := l.examine(ctx, cp, hasCP); err != nil {
		return err
	}
	if f, err = l.settleFormat(f); err != nil {
		return err
	}
	state, err := l.startStream(ctx, f, cp)
	if err != nil {
		return err
	}
	served := time.Now()
	if err := l.syncFound(cp, state.LastSeq); err != nil {
		return err
	}
	lost, err := l.verify(ctx, state, cp, hasCP)
	if err != nil {
		return err
	}
	l.dir.acceptCopy(l.log)
	l.opened.at, l.opened.server, l.opened.feed = l.opts.Now(), served.Sub(start), time.Since(served)
	l.opened.tailLost = lost
	if l.opts.ReadOnly {
		return nil
	}
	return l.startWriting(ctx, state.LastSeq, lost)
}

// readState reads what the last life left. Blocks without a format file are damage: a new
// budget is not the log's.
func (l *Log) readState() (format, checkpoint, bool, error) {
	f, err := l.dir.readFormat()
	if err != nil {
		return f, checkpoint{}, false, err
	}
	if index, err := blockIndexes(l.dir.blocks()); f.Format == 0 && err == nil && len(index) > 0 {
		c, _ := ClassOf(damageFormat)
		return f, checkpoint{}, false, fault.New(fault.LogDamaged, "%s", c.Means).WithReason(c.Reason).WithNext("%s", c.Repair)
	}
	cp, has, err := l.dir.readCheckpoint()
	return f, cp, has, err
}

// settleFormat settles the budget, once the files were looked at: a new format file would hide
// that a log is gone.
func (l *Log) settleFormat(f format) (format, error) {
	if l.opts.ReadOnly {
		if f.Format == 0 {
			return f, fault.New(fault.Unavailable, "there is no log in this data directory")
		}
		return f, nil
	}
	want := l.opts.MaxBytes
	if want == 0 {
		want = f.MaxBytes
	}
	if want == 0 {
		free, ok := freeSpace(l.dir.path)
		if !ok {
			return f, fault.New(fault.Unavailable, "the free space of the data directory cannot be told").
				WithNext("give the log a budget")
		}
		want = max(minBudget, int64(float64(free)*budgetShare))
	}
	if f.Format != FormatVersion || f.MaxBytes != want {
		f = format{Format: FormatVersion, MaxBytes: want}
		l.budgetChanged = true
		if err := l.dir.writeFile(formatName, f); err != nil {
			return f, fault.Wrap(err, fault.Unavailable, "the data directory cannot be written")
		}
	}
	return f, nil
}

// startStream runs the server and opens the stream.
func (l *Log) startStream(ctx context.Context, f format, cp checkpoint) (jetstream.StreamState, error) {
	none := jetstream.StreamState{}
	if err := l.opts.Runners.free(); err != nil {
		return none, err
	}
	store := l.dir.store()
	if err := os.MkdirAll(store, 0o700); err != nil {
		return none, fault.Wrap(err, fault.Unavailable, "the data directory cannot be written")
	}
	had, _ := blockIndexes(l.dir.blocks())
	var err error
	l.srv, err = startServer(store, l.opts.Durability, l.opts.Runners, l.auth, &serverLog{log: l.log, writeError: func() {
		l.fail(errStore, "store_failed", "its disk refused a write")
	}})
	if err != nil {
		return none, fault.Wrap(err, fault.Unavailable, "the embedded log server did not start")
	}
	if l.admin, err = l.auth.connect(grant{"admin", accountLog, everything()}); err != nil {
		return none, fault.Wrap(err, fault.Unavailable, "the embedded log server does not answer")
	}
	if l.js, err = jetstream.New(l.admin); err != nil {
		return none, fault.Wrap(err, fault.Unavailable, "the embedded log server does not answer")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	stream, created, err := ensureStream(ctx, l.js, f.MaxBytes)
	if err != nil {
		return none, fault.Wrap(err, fault.Unavailable, "the log's stream cannot be opened")
	}
	l.stream = stream
	state := stream.CachedInfo().State
	if created && len(had) > 0 {
		l.log.Warn("log: the stream's meta file was missing; it was made again over its blocks",
			slog.Uint64("last_seq", state.LastSeq))
	}
	if created && len(had) == 0 && cp.Seq > 0 {
		return none, fault.New(fault.LogDamaged, "the log is gone: sequence %d was made durable and no block is left", cp.Seq).
			WithReason(damageGone).WithNext("restore the data directory from a backup")
	}
	// A clean stop left the stream's meta files as an earlier start had made them durable.
	if created || !cp.Clean || l.budgetChanged {
		if err := l.dir.syncMeta(); err != nil {
			return none, fault.Wrap(err, fault.Unavailable, "the log's directory cannot be made durable")
		}
	}
	l.space = newSpace(store, f.MaxBytes, int64(state.Bytes), l.opts.Now)
	return state, nil
}

// syncFound makes durable what the last life left in the page cache, before anything is
// folded: a killed process need not have synced it. Blocks before the checkpoint's are.
func (l *Log) syncFound(cp checkpoint, last uint64) error {
	if !l.writes() {
		return nil
	}
	block, err := syncFrom(l.dir.blocks(), cp.Block)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the log's blocks cannot be made durable")
	}
	l.block.Store(int64(block))
	l.synced.Store(last)
	return nil
}

// writes tells that something is kept of what is read: a base may not be ahead of what is
// durable, also where nothing is appended.
func (l *Log) writes() bool { return !l.opts.ReadOnly || l.opts.Base != nil }

// startWriting makes the state of this life durable and runs the committer.
func (l *Log) startWriting(ctx context.Context, last uint64, lost bool) error {
	c, err := newCommitter(l, last)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the log cannot be written")
	}
	l.writer = c
	seq, hash := l.applied.read()
	if err := l.writeCheckpoint(seq, hash, false); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the data directory cannot be written")
	}
	l.evidence.begin(!l.opened.resumed && len(l.chain.list()) == 0)
	l.loops.Add(3)
	go l.tend()
	if l.opts.Base != nil {
		l.loops.Add(1)
		go l.forget()
	}
	go c.run()
	go l.checkpoints()
	return l.begin(ctx, last, lost)
}

// begin commits the log's own facts: its birth, or the tail that an unclean stop took.
func (l *Log) begin(ctx context.Context, last uint64, lost bool) error {
	agg := event.LogAggregate()
	if l.opened.resumed && !lost && !l.chain.bad(agg) {
		return nil // a base that fits knows of the log's birth
	}
	head, err := l.Head(agg)
	if err != nil {
		return err
	}
	var e event.Event
	switch {
	case head.Version == 0:
		e = event.LogCreated{Epoch: event.NewNonce()}
	case lost:
		e = event.LogTailLost{Epoch: event.NewNonce(), LastSeq: last}
		l.log.Warn("log: an unclean stop in durability process may have lost the newest commits", slog.Uint64("last_seq", last))
	default:
		return nil
	}
	_, err = l.Append(ctx, Draft{ID: event.NewCommandID(), Aggregate: agg, Expect: head, At: l.opts.Now(),
		Actor: event.Actor{Credential: "system"}, Events: []event.Event{e}, Reserve: true})
	if err == nil && lost {
		// Were it lost in turn, the next start would begin this history a second time.
		err = l.syncBlocks()
	}
	if err != nil {
		return fmt.Errorf("begin the log: %w", err)
	}
	return nil
}
