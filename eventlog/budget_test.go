package eventlog

import (
	"context"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// A budget that is lowered below what the log holds loses nothing and refuses new work, but not
// what makes room: carried state and log.pruned have to be written first. With the old budget
// it goes on as before.
func TestABudgetBelowWhatIsUsed(t *testing.T) {
	dir, base := t.TempDir(), newIndex()
	l := open(t, dir, over(base))
	a := event.SessionAggregate(event.NewSessionID())
	for l.Status().Bytes < 3*minBudget {
		appendText(t, l, a, 200<<10)
	}
	head, _ := l.Head(a)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds the stream's limit changed
		base = base.restarted()
		l = open(t, dir, over(base), func(o *Options) { o.MaxBytes = minBudget })
		if s := l.Status(); s.MaxBytes != minBudget || s.Space != SpaceReserve {
			t.Errorf("status %+v", s)
		}
		if _, err := l.Append(context.Background(), draft(l, t, a)); fault.KindOf(err) != fault.StorageFull {
			t.Errorf("new work: %v", err)
		}
		if got, _ := l.Head(a); got != head {
			t.Errorf("head %+v, before %+v", got, head)
		}
		d := draft(l, t, a)
		d.Reserve = true
		r, err := l.Append(context.Background(), d)
		if err != nil {
			t.Fatalf("what makes room is refused: %v", err)
		}
		head = Head{Version: r.Commit.Version, Seq: r.Seq, Hash: r.Hash}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l = open(t, dir, over(base.restarted()))
	if limit := l.stream.CachedInfo().Config.MaxBytes; limit != 64<<20 {
		t.Errorf("the stream's limit is %d", limit)
	}
	mustAppend(t, l, a)
}
