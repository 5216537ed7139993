package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/history"
)

// Log is what a Pruner needs of the log.
type Log interface {
	Status() eventlog.Status
	Blocks() ([]eventlog.Block, error)
	Prune(ctx context.Context, first uint64, reason string) error
}

// Living tells what still needs its commits (state.Keeper).
type Living interface {
	OldestLiving(before uint64) (eventlog.Living, bool, error)
	// Flush brings what was applied into the file: nothing leaves that is not there.
	Flush(ctx context.Context) error
}

// Options of a Pruner.
type Options struct {
	Log     Log
	Living  Living
	Ledger  *history.Ledger
	Writer  *aggregate.Writer
	Carrier *Carrier
	Policy  Policy
	// Pages lists the pages of refs that hold a number bound by a commit before a sequence.
	Pages func(ctx context.Context, before uint64) ([]event.Aggregate, error)
	// Beyond reports whether an event has left a Session's tail after a time.
	Beyond func(after time.Time) (bool, error)
	Now    func() time.Time
	Logger *slog.Logger
	// Rate bounds the bytes carried in a second, and carrying to half of the time; 0: no bound.
	Rate int64
}

// Pruner lets the log's beginning leave, one round at a time: what is alive there is carried
// forward, the cut is announced, the prefix goes. A round that breaks off anywhere costs
// nothing but its work; the next one finds what is left to do.
type Pruner struct {
	o Options

	round sync.Mutex // one round at a time
	mu    sync.Mutex // guards all below
	bytes Round      // of the last round by bytes
	tail  time.Time  // when the last round of policy tail began
	work  Work
}

// Work is what the rounds of this life did.
type Work struct {
	Rounds  int   `json:"rounds"`
	Carried int64 `json:"carried_records"`
	// CarriedBytes were written, FreedBytes left the log.
	CarriedBytes int64 `json:"carried_bytes"`
	FreedBytes   int64 `json:"freed_bytes"`
	// Running tells the reason of the round that is under way.
	Running string `json:"running,omitempty"`
	// HeldBy is the kind of record whose state could not be carried, and so holds the log's
	// beginning; Failed is why the last round broke off.
	HeldBy string `json:"held_by,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// NewPruner makes a Pruner.
func NewPruner(o Options) *Pruner {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pruner{o: o}
	if l := o.Ledger.Facts().LastPrune; l != nil && l.Reason == ReasonTail {
		p.tail = l.At.Add(-time.Minute) // what happened during that round is looked at again
	}
	return p
}

// Run looks at each tick until ctx ends.
func (p *Pruner) Run(ctx context.Context, tick <-chan time.Time) {
	told := ""
	for {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		_, err := p.Once(ctx)
		why := ""
		if err != nil && ctx.Err() == nil {
			why = err.Error()
		}
		if why != told && why != "" {
			p.o.Logger.Warn("the log could not be pruned; it is tried again", slog.String("reason", why))
		}
		told = why
	}
}

// Full tells that the log is larger than it may be, so that a round is due without waiting.
func (p *Pruner) Full() bool {
	st := p.o.Log.Status()
	limit := Limit(State{Budget: st.MaxBytes}, p.o.Policy)
	return limit > 0 && st.Bytes > limit
}

// Once decides, does the round if there is one, and tells what was decided.
func (p *Pruner) Once(ctx context.Context) (Decision, error) {
	p.round.Lock()
	defer p.round.Unlock()
	if err := p.finish(ctx); err != nil {
		return Decision{}, p.ended(err)
	}
	s, err := p.state()
	if err != nil {
		return Decision{}, p.ended(err)
	}
	d := Decide(s, p.o.Policy, p.o.Now())
	if !d.Due() {
		return d, nil
	}
	return d, p.do(ctx, s, d)
}

// finish lets go what a dead server announced and did not get to.
func (p *Pruner) finish(ctx context.Context) error {
	st := p.o.Log.Status()
	if st.PrunedTo <= st.FirstSeq || len(st.Evidence.Damaged) > 0 {
		return nil
	}
	return p.o.Log.Prune(ctx, st.PrunedTo, ReasonOperator) // announced with its reason already
}

// Cut lets everything before a sequence leave that is the beginning of a block, because an
// operator asks for it. 0: everything that nothing alive needs, which ends the newest block.
func (p *Pruner) Cut(ctx context.Context, first uint64) error {
	p.round.Lock()
	defer p.round.Unlock()
	s, err := p.state()
	if err != nil {
		return p.ended(err)
	}
	return p.do(ctx, s, Decision{Cut: first, Roll: first == 0, Reason: ReasonOperator})
}

// do is one round.
func (p *Pruner) do(ctx context.Context, s State, d Decision) error {
	if len(s.Blocks) == 0 {
		return nil
	}
	began := p.o.Now()
	p.note(func() { p.work.Running = d.Reason })
	before := Total(s.Blocks)
	carried, err := p.carryAndPrune(ctx, s, d)
	after := before
	if left, berr := p.blocks(); berr == nil {
		after = Total(left)
	}
	p.note(func() {
		p.work.Running = ""
		if err != nil {
			return
		}
		freed := max(0, before+carried-after)
		p.work.Rounds++
		p.work.FreedBytes += freed
		switch d.Reason {
		case ReasonTail:
			p.tail = began
		case ReasonBytes:
			p.bytes = Round{Freed: freed, Carried: carried, After: after}
		}
	})
	return p.ended(err)
}

func (p *Pruner) carryAndPrune(ctx context.Context, s State, d Decision) (carried int64, err error) {
	cut := d.Cut
	if d.Roll && !s.rollable() {
		cut = s.Blocks[len(s.Blocks)-1].First
	} else if d.Roll {
		if cut, err = p.roll(ctx, s); err != nil {
			return 0, err
		}
	}
	carried, held, err := p.carryBefore(ctx, cut)
	if err != nil {
		return carried, err
	}
	if held > 0 {
		cut = border(s.Blocks, held)
	}
	if cut <= s.Blocks[0].First {
		return carried, nil
	}
	if err := p.o.Living.Flush(ctx); err != nil {
		return carried, fmt.Errorf("write the read models: %w", err)
	}
	return carried, p.o.Log.Prune(ctx, cut, d.Reason)
}

// border is the last beginning of a block that is not behind a sequence.
func border(blocks []Block, seq uint64) uint64 {
	at := uint64(0)
	for _, b := range blocks {
		if b.First <= seq {
			at = b.First
		}
	}
	return at
}

// carryBefore carries everything alive that needs a commit before the cut. held is the root of
// a record that could not be carried, 0: there is none.
func (p *Pruner) carryBefore(ctx context.Context, cut uint64) (carried int64, held uint64, err error) {
	for {
		l, some, err := p.o.Living.OldestLiving(cut)
		if err != nil {
			return carried, 0, fmt.Errorf("find what is alive: %w", err)
		}
		if !some {
			break
		}
		n, err := p.carry(ctx, l.Aggregate)
		carried += n
		if cannotCarry(err) {
			p.note(func() { p.work.HeldBy = string(l.Aggregate.Domain) })
			p.o.Logger.Warn("the log's beginning stays: a record in it cannot be carried forward",
				slog.String("domain", string(l.Aggregate.Domain)), slog.Any("reason", err))
			return carried, l.Root, nil
		}
		if err != nil {
			return carried, 0, err
		}
	}
	p.note(func() { p.work.HeldBy = "" })
	if p.o.Pages == nil {
		return carried, 0, nil
	}
	pages, err := p.o.Pages(ctx, cut)
	if err != nil {
		return carried, 0, fmt.Errorf("find what refs are alive: %w", err)
	}
	for _, a := range pages {
		n, err := p.carry(ctx, a)
		if carried += n; err != nil {
			return carried, 0, err
		}
	}
	return carried, 0, nil
}

// cannotCarry tells a record that will not be carried by trying again.
func cannotCarry(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return false
	}
	return f.Kind == fault.LogDamaged || f.Kind == fault.UnknownSessionID || f.Kind == fault.Unavailable && (f.Reason == "state_too_big" || f.Reason == "no_state")
}

// carry carries one aggregate and then rests, so that callers have the log for themselves at
// least half of the time.
func (p *Pruner) carry(ctx context.Context, a event.Aggregate) (int64, error) {
	began := time.Now()
	n, err := p.o.Carrier.Carry(ctx, a)
	if err != nil {
		return n, err
	}
	p.note(func() { p.work.Carried++; p.work.CarriedBytes += n })
	if p.o.Rate <= 0 {
		return n, nil
	}
	rest := max(time.Since(began), time.Duration(float64(n)/float64(p.o.Rate)*float64(time.Second)))
	select {
	case <-time.After(rest):
		return n, nil
	case <-ctx.Done():
		return n, ctx.Err()
	}
}

// roll fills the newest block up, so that the next one begins, and tells its first sequence.
func (p *Pruner) roll(ctx context.Context, s State) (uint64, error) {
	last := s.Blocks[len(s.Blocks)-1].First
	fill := event.LogFilled{Fill: strings.Repeat("0", fillBytes)}
	for range maxFills {
		blocks, err := p.blocks()
		if err != nil {
			return 0, err
		}
		if now := blocks[len(blocks)-1]; now.First > last {
			return now.First, nil
		}
		_, err = p.o.Writer.Do(ctx, aggregate.Command{Aggregate: event.LogAggregate(), Actor: p.o.Carrier.actor, Reserve: true},
			func(time.Time) ([]event.Event, error) { return []event.Event{fill}, nil })
		if err != nil {
			return 0, err
		}
	}
	return 0, fault.New(fault.Internal, "the newest block of the log does not end")
}

// state gathers what a decision sees.
func (p *Pruner) state() (State, error) {
	blocks, err := p.blocks()
	if err != nil {
		return State{}, err
	}
	for i, b := range blocks {
		blocks[i].Newest = p.o.Ledger.NewestIn(b.First, b.Last)
	}
	st := p.o.Log.Status()
	s := State{Blocks: blocks, Budget: st.MaxBytes, Facts: p.o.Ledger.Facts(), Damaged: len(st.Evidence.Damaged) > 0}
	p.note(func() { s.LastBytes, s.LastTail = p.bytes, p.tail })
	if !p.o.Policy.Tail {
		return s, nil
	}
	s.Beyond = s.Facts.Removed >= s.Facts.First && s.Facts.Removed > 0
	if !s.Beyond && p.o.Beyond != nil {
		s.Beyond, err = p.o.Beyond(s.LastTail)
	}
	return s, err
}

// blocks lists the log's blocks that hold a commit, oldest first.
func (p *Pruner) blocks() ([]Block, error) {
	list, err := p.o.Log.Blocks()
	if err != nil {
		return nil, err
	}
	out := make([]Block, 0, len(list))
	for _, b := range list {
		if b.First == 0 {
			continue
		}
		if n := len(out); n > 0 {
			out[n-1].Last = b.First - 1
		}
		out = append(out, Block{First: b.First, Bytes: b.Bytes})
	}
	if n := len(out); n > 0 {
		out[n-1].Last = max(p.o.Log.Status().Seq, out[n-1].First)
	}
	return out, nil
}

func (p *Pruner) note(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *Pruner) ended(err error) error {
	p.note(func() {
		p.work.Failed = ""
		if err != nil {
			p.work.Failed = string(fault.KindOf(err))
		}
	})
	return err
}

// ConfirmClock records that an operator found the clock right.
func (p *Pruner) ConfirmClock(ctx context.Context) error {
	_, err := p.o.Writer.Do(ctx, aggregate.Command{Aggregate: event.LogAggregate(), Actor: p.o.Carrier.actor, Reserve: true},
		func(time.Time) ([]event.Event, error) { return []event.Event{event.LogClockConfirmed{}}, nil })
	return err
}
