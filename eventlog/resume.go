package eventlog

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// verify compares the log with the checkpoint, settles where the read models stand and folds
// what they have not seen; lost tells of a tail that a power cut took from durability process.
func (l *Log) verify(ctx context.Context, s jetstream.StreamState, cp checkpoint, has bool) (lost bool, err error) {
	first := max(s.FirstSeq, 1)
	l.first.Store(first)
	l.opened.first = first
	l.pruned, l.chain.pruned = cp.Pruned, first > 1
	if has {
		if lost, err = cp.lostTail(s.LastSeq, l.boot); err != nil {
			return false, err
		}
	}
	if err := l.checkStored(ctx, s, cp); err != nil {
		return false, err
	}
	if err := l.checkStart(ctx, s); err != nil {
		return false, err
	}
	from, err := l.settleBase(ctx, s, cp, lost)
	if err != nil {
		return false, err
	}
	err = l.catchUp(ctx, from, s.LastSeq)
	if errors.Is(err, errHalfCarried) {
		if err = l.resetBase(ResetHalfCarried); err == nil {
			from = first
			err = l.catchUp(ctx, from, s.LastSeq)
		}
	}
	if err != nil {
		return false, err
	}
	l.opened.folded = s.LastSeq + 1 - min(from, s.LastSeq+1)
	l.settleChain()
	return lost, nil
}

// settleChain closes what has no state and names everything that is closed.
func (l *Log) settleChain() {
	for _, d := range l.chain.settle() {
		if a, ok := event.ParseAggregate(d.Aggregate); ok {
			l.broken(a)
		}
	}
	for _, d := range l.chain.list() {
		l.log.Error("log: damaged record", slog.String("aggregate", d.Aggregate), slog.Uint64("seq", d.Seq), slog.String("reason", d.Reason))
	}
}

// checkStored compares the commit that the checkpoint names with what is stored there.
func (l *Log) checkStored(ctx context.Context, s jetstream.StreamState, cp checkpoint) error {
	if cp.Seq == 0 || cp.Seq > s.LastSeq { // a tail that may be lost
		return nil
	}
	if cp.Seq < s.FirstSeq {
		return hole(cp.Seq)
	}
	hash, err := l.storedHash(ctx, cp.Seq)
	if err != nil {
		return err
	}
	if hash != cp.Hash {
		return fault.New(fault.LogDamaged, "sequence %d is not the commit that was made durable there", cp.Seq).
			WithReason(damageForeign).WithNext("restore the data directory from a backup")
	}
	l.checked = BaseCheckpoint{Seq: cp.Seq, Hash: hash}
	return nil
}

// storedHash is the hash of a stored body. The checkpoint's is read once for both uses.
func (l *Log) storedHash(ctx context.Context, seq uint64) (string, error) {
	if seq == l.checked.Seq {
		return l.checked.Hash, nil
	}
	m, err := l.get(ctx, seq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return "", hole(seq)
	case err != nil:
		return "", fault.Wrap(err, fault.Unavailable, "the log cannot be read")
	}
	return event.Hash(m.Data), nil
}

// checkStart holds where the log begins against the newest log.pruned, which is in the log
// before the prefix goes, and in the checkpoint soon after.
func (l *Log) checkStart(ctx context.Context, s jetstream.StreamState) error {
	if s.LastSeq == 0 || s.FirstSeq <= max(l.pruned, 1) {
		return nil
	}
	subject := subjectOf(event.LogAggregate())
	for from := s.FirstSeq; ; {
		m, err := l.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return hole(1)
		}
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "the log cannot be read")
		}
		if c, err := event.Decode(m.Data); err == nil {
			l.own(c.Events)
		}
		if s.FirstSeq <= l.pruned {
			return nil
		}
		from = m.Sequence + 1
	}
}

// settleBase tells from where the log is folded: from after the base's checkpoint, or from
// the log's first commit where there is none or it does not fit.
func (l *Log) settleBase(ctx context.Context, s jetstream.StreamState, cp checkpoint, lost bool) (uint64, error) {
	first := l.first.Load()
	if l.opts.Base == nil {
		return first, nil
	}
	at, reason, err := l.judgeBase(ctx, s, cp, lost)
	if err != nil {
		return 0, err
	}
	if reason != "" {
		return first, l.resetBase(reason)
	}
	if at.Seq == 0 {
		return first, nil
	}
	damaged, err := l.opts.Base.Damaged()
	if err != nil {
		return first, l.resetBase(ResetUnreadable)
	}
	l.chain.resume(at.Aggregates, damaged)
	l.mu.Lock()
	l.epoch = at.Epoch
	l.mu.Unlock()
	l.applied.move(at.Seq, at.Hash)
	l.opened.resumed = true
	return at.Seq + 1, nil
}

// judgeBase compares the base's checkpoint with the log; a reason: it does not fit.
func (l *Log) judgeBase(ctx context.Context, s jetstream.StreamState, cp checkpoint, lost bool) (BaseCheckpoint, string, error) {
	at, err := l.opts.Base.Checkpoint()
	switch {
	case err != nil:
		l.log.Warn("log: the read models cannot be read", slog.Any("error", err))
		return at, ResetUnreadable, nil
	case at.Seq == 0:
		return at, "", nil
	case lost:
		return at, ResetTailLost, nil
	case at.Seq > s.LastSeq && cp.proves(at):
		return at, "", fault.New(fault.LogDamaged, "the log ends at sequence %d, but the read models have seen sequence %d, which was durable", s.LastSeq, at.Seq).
			WithReason(damageTail).WithNext("%s", restoreBackup)
	case at.Seq > s.LastSeq:
		return at, ResetBeyondEnd, nil
	case at.Seq < s.FirstSeq: // its commit is gone, so nothing can be compared
		return at, ResetBeforeStart, nil
	}
	hash, err := l.storedHash(ctx, at.Seq)
	switch {
	case err != nil:
		return at, "", err
	case hash != at.Hash:
		return at, ResetForeign, nil
	case at.Epoch == "" || cp.Seq > 0 && at.Seq >= cp.Seq && at.Epoch != cp.Epoch:
		return at, ResetEpoch, nil
	}
	return at, "", nil
}

// resetBase has everything folded again.
func (l *Log) resetBase(reason string) error {
	l.log.Warn("log: the read models are made again from the log", slog.String("reason", reason))
	if err := l.opts.Base.Reset(reason); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the read models cannot be made again").
			WithNext("check the free space and permissions of the data directory")
	}
	pruned := l.chain.pruned
	l.chain = newChain(l.opts.Base)
	l.chain.pruned = pruned
	l.opened.reset, l.opened.resumed = reason, false
	l.applied.move(0, "")
	return nil
}

// forget drops the heads from memory that the base holds, about every second.
func (l *Log) forget() {
	defer l.loops.Done()
	tick := time.NewTicker(forgetInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if at, err := l.opts.Base.Checkpoint(); err == nil {
				l.chain.turn(at.Seq)
			}
		case <-l.stop:
			return
		}
	}
}
