package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// kept is what a base has in its file or in memory.
type kept struct {
	cp      BaseCheckpoint
	heads   map[event.Aggregate]BaseHead
	removed map[event.Aggregate]bool
	damaged map[event.Aggregate]Damage
	epoch   string
}

func (k kept) copy() kept {
	k.heads, k.removed, k.damaged = maps.Clone(k.heads), maps.Clone(k.removed), maps.Clone(k.damaged)
	return k
}

func nothing() kept {
	return kept{heads: map[event.Aggregate]BaseHead{}, removed: map[event.Aggregate]bool{}, damaged: map[event.Aggregate]Damage{}}
}

// index is a base that keeps heads alone. Its file lags behind its memory until flush.
type index struct {
	mu     sync.Mutex
	mem    kept
	file   kept
	lazy   bool // flushed by hand only
	broken error
	seen   []Applied
	resets []string
	asked  int // heads read from the file
	scrubs int
}

func newIndex() *index { return &index{mem: nothing(), file: nothing()} }

// restarted is what the next life finds in the file.
func (b *index) restarted() *index {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &index{mem: b.file.copy(), file: b.file.copy()}
}

func (b *index) flush() {
	b.mu.Lock()
	b.file = b.mem.copy()
	b.mu.Unlock()
}

func (b *index) Checkpoint() (BaseCheckpoint, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.file.cp, b.broken
}

func (b *index) Head(a event.Aggregate) (BaseHead, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	h, ok := b.file.heads[a]
	return h, ok, nil
}

func (b *index) Damaged() ([]Damage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.file.damaged)), nil
}

func (b *index) Scrub(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scrubs++
	return nil
}

func (b *index) Reset(reason string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mem, b.file, b.seen, b.broken = nothing(), nothing(), nil, nil
	b.resets = append(b.resets, reason)
	return nil
}

func (b *index) Apply(a Applied) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, a)
	for _, e := range a.Commit.Events {
		switch e := e.(type) {
		case event.LogCreated:
			b.mem.epoch = e.Epoch
		case event.LogTailLost:
			b.mem.epoch = e.Epoch
		case event.LogPruned:
			b.mem.epoch = e.Epoch
		case event.SessionRemoved:
			b.mem.removed[event.SessionAggregate(e.Session)] = true
		default: // moves no more than the head
		}
	}
	h := b.mem.heads[a.Commit.Aggregate]
	h.Head = Head{Version: a.Commit.Version, Seq: a.Seq, Hash: a.Hash}
	if a.Root > 0 {
		h.Root = a.Root
	}
	b.mem.heads[a.Commit.Aggregate] = h
	n := b.mem.cp.Aggregates
	if a.First {
		n++
	}
	b.mem.cp = BaseCheckpoint{Seq: a.Seq, Hash: a.Hash, Epoch: b.mem.epoch, Aggregates: n}
	if !b.lazy {
		b.file = b.mem.copy()
	}
}

func (b *index) Damage(a event.Aggregate, d Damage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mem.damaged[a] = d
	if !b.lazy {
		b.file = b.mem.copy()
	}
}

func (b *index) OldestLiving(before uint64) (Living, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest, found := Living{Root: before}, false
	for a, h := range b.file.heads {
		if h.Root < oldest.Root && !b.file.removed[a] && a.Domain != event.DomainLog {
			oldest, found = Living{Aggregate: a, Root: h.Root}, true
		}
	}
	return oldest, found, nil
}

// saw lists the sequences that were applied in this life.
func (b *index) saw() []uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []uint64
	for _, a := range b.seen {
		out = append(out, a.Seq)
	}
	return out
}

func over(b Base) func(*Options) { return func(o *Options) { o.Base = b } }

func upTo(from, to uint64) (out []uint64) {
	for s := from; s <= to; s++ {
		out = append(out, s)
	}
	return out
}

func aggregates(n int) (out []event.Aggregate) {
	for i := range n {
		out = append(out, event.SessionAggregate(event.SessionID(fmt.Sprintf("s-%d", i))))
	}
	return out
}

// Only the commits after the base's checkpoint are read; chains go on from the heads that the
// base holds, and a writer that believes an old record new is refused.
func TestStartReadsOnlyWhatTheBaseHasNotSeen(t *testing.T) {
	dir, base := t.TempDir(), newIndex()
	l := open(t, dir, over(base))
	aggs := aggregates(5)
	for i := range 40 {
		if i == 25 {
			base.flush()
			base.lazy = true
		}
		mustAppend(t, l, aggs[i%5])
	}
	want := base.mem.copy()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	base = base.restarted()
	at := base.file.cp.Seq
	l = open(t, dir, over(base))
	if d := cmp.Diff(upTo(at+1, 41), base.saw()); d != "" || at != 26 {
		t.Errorf("from %d: %s", at, d)
	}
	if d := cmp.Diff(want.heads, base.mem.heads, cmp.AllowUnexported(BaseHead{})); d != "" {
		t.Error(d)
	}
	if s := l.Status(); s.Aggregates != 6 || s.Folded != 41-at || s.Refolded != "" || s.Seq != 41 || l.Epoch() != want.epoch {
		t.Errorf("status %+v", s)
	}
	for _, a := range aggs {
		stale := Draft{ID: event.NewCommandID(), Aggregate: a, At: time.Now(), Events: threeEvents(0)}
		if _, err := l.Append(context.Background(), stale); !errors.Is(err, ErrConflict) {
			t.Errorf("expected 0: %v", err)
		}
		mustAppend(t, l, a)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	base = base.restarted()
	l = open(t, dir, over(base))
	if len(base.saw()) != 0 || l.Status().Aggregates != 6 {
		t.Errorf("after a clean stop with everything in the base %v were read", base.saw())
	}
	mustAppend(t, l, aggs[0])
	if l.evidence.pass(context.Background()); base.scrubs != 1 || l.Status().Evidence.Scrub.At.IsZero() {
		t.Errorf("the scrub asked the base %d times", base.scrubs)
	}
}

// A base that does not fit the log is thrown away, and everything is folded: no feed is
// opened behind the end or before the start.
func TestBaseThatDoesNotFitIsReset(t *testing.T) {
	for reason, spoil := range map[string]func(*kept){
		ResetBeyondEnd: func(k *kept) { k.cp.Seq += 5 },
		ResetForeign:   func(k *kept) { k.cp.Hash = event.Hash(nil) },
		ResetEpoch:     func(k *kept) { k.cp.Epoch = event.NewNonce() },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			dir, base := t.TempDir(), newIndex()
			l := open(t, dir, over(base))
			for i := range 20 {
				mustAppend(t, l, aggregates(4)[i%4])
			}
			want := base.mem.copy()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			base = base.restarted()
			spoil(&base.file)
			l = open(t, dir, over(base))
			if d := cmp.Diff([]string{reason}, base.resets); d != "" {
				t.Fatal(d)
			}
			if d := cmp.Diff(upTo(1, 21), base.saw()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(want.heads, base.mem.heads); d != "" || l.Status().Refolded != reason {
				t.Errorf("%+v %s", l.Status(), d)
			}
			mustAppend(t, l, aggregates(4)[0])
		})
	}
}

// Who only reads feeds the base as well, so what it reads has to be durable first.
func TestReadOnlyBaseIsNotAheadOfTheDisk(t *testing.T) {
	dir := filled(t, 3, Always)
	l := open(t, dir, over(newIndex()), func(o *Options) { o.ReadOnly = true })
	if s := l.Status(); l.SyncedSeq() != s.Seq || s.Seq == 0 {
		t.Errorf("synced %d of %d", l.SyncedSeq(), s.Seq)
	}
}

// A base that cannot be read costs time and nothing else.
func TestUnreadableBaseIsReset(t *testing.T) {
	dir, base := t.TempDir(), newIndex()
	l := open(t, dir, over(base))
	mustAppend(t, l, aggregates(1)[0])
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	base = base.restarted()
	base.broken = errInjected
	l = open(t, dir, over(base))
	if len(base.saw()) != 2 || l.Status().Refolded != ResetUnreadable {
		t.Errorf("%v %+v", base.saw(), l.Status())
	}
}

// JetStream would clamp such a feed in silence, or wait behind the end: it is never opened.
func TestFeedOutsideTheLogIsNeverOpened(t *testing.T) {
	l := open(t, t.TempDir())
	for range 5 {
		mustAppend(t, l, aggregates(1)[0])
	}
	for name, c := range map[string]struct {
		from, last uint64
		reason     string
	}{
		"behind the end":       {8, 9, ResetBeyondEnd},
		"over the end":         {3, 7, ResetBeyondEnd},
		"before the beginning": {0, 6, ResetBeforeStart},
	} {
		err := l.feed(context.Background(), c.from, c.last, func(message) error { t.Errorf("%s: a message was fed", name); return nil })
		if f := fault.As(err); f == nil || f.Kind != fault.LogDamaged || f.Reason != c.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What was closed stays closed although its commits are not read again.
func TestDamageIsKeptByTheBase(t *testing.T) {
	dir, base := t.TempDir(), newIndex()
	l := open(t, dir, over(base))
	whole, gap := aggregates(2)[0], aggregates(2)[1]
	mustAppend(t, l, whole)
	mustAppend(t, l, gap)
	head, _ := l.Head(gap)
	plant(t, l, gap, 3, head.Hash)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for life := range 3 {
		base = base.restarted()
		l = open(t, dir, over(base))
		if _, err := l.Head(gap); fault.KindOf(err) != fault.LogDamaged || fault.As(err).Reason != damageVersion {
			t.Fatalf("life %d: %v", life, err)
		}
		if d := l.Status().Damaged; len(d) != 1 || d[0].Seq != 4 || l.Status().Aggregates != 3 {
			t.Errorf("life %d: %+v", life, l.Status())
		}
		mustAppend(t, l, whole)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(base.saw()) != 1 {
		t.Errorf("the last life read %v", base.saw())
	}
}

// In durability process a cut may leave the log shorter than the base: it is dropped, every
// commit is folded once, and the log begins a new epoch.
func TestTailLostResetsTheBase(t *testing.T) {
	dir, base := t.TempDir(), newIndex()
	l := open(t, dir, over(base))
	for i := range 10 {
		mustAppend(t, l, aggregates(3)[i%3])
	}
	epoch := l.Epoch()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	editCheckpoint(t, dir, func(c *checkpoint) { c.Seq, c.Hash, c.Clean, c.Boot = 900, event.Hash(nil), false, "before" })
	base = base.restarted()
	base.file.cp.Seq = 900
	l = open(t, dir, over(base))
	if d := cmp.Diff(upTo(1, 12), base.saw()); d != "" || !slices.Equal(base.resets, []string{ResetTailLost}) {
		t.Errorf("%v: %s", base.resets, d)
	}
	if s := l.Status(); !s.TailLost || s.Epoch == epoch || base.mem.epoch != s.Epoch {
		t.Errorf("%+v, the base has epoch %s", s, base.mem.epoch)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	base = base.restarted()
	l = open(t, dir, over(base))
	if s := l.Status(); len(base.saw()) != 0 || len(base.resets) != 0 || s.TailLost {
		t.Errorf("the next start: %v %v", base.saw(), base.resets)
	}
}

// While heads come and go in memory every writer finds its own last commit.
func TestHeadsAreRightWhileTheyComeAndGo(t *testing.T) {
	base := newIndex()
	base.lazy = true
	l := open(t, t.TempDir(), over(base))
	stop, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-stop:
				return
			default:
				base.flush()
				at, _ := base.Checkpoint()
				l.chain.turn(at.Seq)
			}
		}
	}()
	var wg sync.WaitGroup
	for _, a := range aggregates(4) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 60 {
				h, err := l.Head(a)
				if err != nil || h.Version != uint64(i) {
					t.Errorf("head %+v of %d commits: %v", h, i, err)
					return
				}
				if _, err := l.Append(context.Background(), Draft{ID: event.NewCommandID(), Aggregate: a, Expect: h, At: time.Now(), Events: threeEvents(i)}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	close(stop)
	<-gone
	base.flush()
	at, _ := base.Checkpoint()
	for range 2 {
		l.chain.turn(at.Seq)
	}
	if n := len(l.chain.young) + len(l.chain.old); n != 0 {
		t.Errorf("%d heads are still in memory", n)
	}
}
