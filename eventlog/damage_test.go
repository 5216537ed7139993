package eventlog

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// filled is a closed log of n commits with its directory.
func filled(t *testing.T, n int, mode Durability) string {
	t.Helper()
	dir := t.TempDir()
	l := open(t, dir, func(o *Options) { o.Durability = mode })
	a := event.SessionAggregate(event.NewSessionID())
	for i := range n {
		d := draft(l, t, a)
		d.Events = threeEvents(i)
		if _, err := l.Append(context.Background(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func blockFile(dir string, i string) string {
	return filepath.Join(dir, "log", "jetstream", "WC", "streams", "LOG", "msgs", i)
}

func reopen(dir string, mode Durability) (*Log, error) {
	return Open(context.Background(), Options{Dir: dir, Durability: mode})
}

func wantDamage(t *testing.T, dir string, mode Durability, reason string) {
	t.Helper()
	l, err := reopen(dir, mode)
	if err == nil {
		_ = l.Close()
		t.Fatal("a damaged log was opened")
	}
	if f := fault.As(err); f.Kind != fault.LogDamaged || f.Reason != reason {
		t.Fatalf("%v (reason %q), want log_damaged with %q", err, f.Reason, reason)
	}
}

// A log that ends before its checkpoint has lost something that was durable.
func TestTruncatedTailIsNoticed(t *testing.T) {
	dir := filled(t, 40, Always)
	block := blockFile(dir, "1.blk")
	s, err := os.Stat(block)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(block, s.Size()-100); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(blockFile(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	wantDamage(t, dir, Always, "tail_lost")
}

// The checkpoint file follows once a second and the read models within milliseconds: what is
// cut off behind the file and before them was durable too, and is missed; also where the file itself is gone, or the log.
func TestTailTruncatedBehindTheCheckpointIsNoticed(t *testing.T) {
	dir, base := t.TempDir(), newIndex()
	l := open(t, dir, over(base), func(o *Options) { o.Durability = Always })
	a := aggregates(1)[0]
	at, err := os.ReadFile(filepath.Join(dir, checkpointName))
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, a)
	size, err := os.Stat(blockFile(dir, "1.blk"))
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, a)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, checkpointName), at, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(blockFile(dir, "1.blk"), size.Size()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(blockFile(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	for _, without := range []string{"", checkpointName, storeName, ledgerName} { // each beside the ones before
		if without != "" {
			if err := os.RemoveAll(filepath.Join(dir, without)); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Open(context.Background(), Options{Dir: dir, Base: base.restarted()})
		if err == nil {
			_ = l.Close()
		}
		if f := fault.As(err); err == nil || f.Kind != fault.LogDamaged || f.Reason != damageTail {
			t.Errorf("without %q: %v", without, err)
		}
	}
}

// Blocks gone altogether are not an empty log.
func TestMissingLogIsNoticed(t *testing.T) {
	dir := filled(t, 3, Always)
	if err := os.RemoveAll(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	wantDamage(t, dir, Always, "log_missing")
}

// A log that is another one than the checkpoint knows is refused.
func TestForeignLogIsNoticed(t *testing.T) {
	dir, other := filled(t, 5, Always), filled(t, 5, Always)
	if err := os.RemoveAll(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(other, "log"), filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	wantDamage(t, dir, Always, "foreign_log")
}

// A stream whose meta file is gone is made again over its blocks; nothing is lost.
func TestLostMetaFileLosesNothing(t *testing.T) {
	dir := filled(t, 10, Always)
	if err := os.Remove(filepath.Join(filepath.Dir(blockFile(dir, "")), "meta.inf")); err != nil {
		t.Fatal(err)
	}
	l, err := reopen(dir, Always)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if s := l.Status(); s.Seq != 11 {
		t.Errorf("%d commits, want 11", s.Seq)
	}
}

// A broken chain closes its own aggregate: the others work, and no fold sees past the break.
func TestDamagedAggregateIsIsolated(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	agg := func() event.Aggregate { return event.SessionAggregate(event.NewSessionID()) }
	whole, gap, broken, foreign, garbage := agg(), agg(), agg(), agg(), agg()
	for _, a := range []event.Aggregate{whole, gap, broken, foreign, garbage} {
		mustAppend(t, l, a)
	}
	head := func(a event.Aggregate) Head { h, _ := l.Head(a); return h }
	plant(t, l, gap, 3, head(gap).Hash)
	plant(t, l, broken, 2, event.Hash([]byte("x")))
	c := event.Commit{Format: event.Format, Aggregate: whole, Version: 2, Prev: head(whole).Hash, Events: []event.Event{event.SessionClosed{}}}
	body, _ := c.Encode()
	plantBytes(t, l, foreign, body)
	plantBytes(t, l, garbage, []byte("no commit"))
	plant(t, l, gap, 2, head(gap).Hash) // would fit, but the break lies before
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	fold := &memory{}
	l = open(t, dir, func(o *Options) { o.Folds = []Fold{fold} })
	want := map[string]string{gap.String(): damageVersion, broken.String(): damagePrev, foreign.String(): damageSubject, garbage.String(): damageUnreadable}
	for _, d := range l.Status().Damaged {
		if want[d.Aggregate] != d.Reason {
			t.Errorf("%+v, want reason %q", d, want[d.Aggregate])
		}
		delete(want, d.Aggregate)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
	if len(fold.seqs) != 6 {
		t.Errorf("the fold saw %v, the chain holds for 1 to 6", fold.seqs)
	}
	for _, a := range []event.Aggregate{gap, broken, foreign, garbage} {
		if _, err := l.Head(a); fault.KindOf(err) != fault.LogDamaged {
			t.Errorf("head of a damaged aggregate: %v", err)
		}
		d := Draft{ID: event.NewCommandID(), Aggregate: a, Events: []event.Event{event.SessionClosed{}}}
		if _, err := l.Append(context.Background(), d); fault.KindOf(err) != fault.LogDamaged {
			t.Errorf("append to a damaged aggregate: %v", err)
		}
		if err := l.Replay(context.Background(), Range{Aggregate: a}, func(Entry) error { return nil }); fault.KindOf(err) != fault.LogDamaged {
			t.Errorf("replay of a damaged aggregate: %v", err)
		}
	}
	mustAppend(t, l, whole)
	if err := l.Replay(context.Background(), Range{Aggregate: whole}, func(Entry) error { return nil }); err != nil {
		t.Errorf("replay of the whole one: %v", err)
	}
}

func editCheckpoint(t *testing.T, dir string, change func(*checkpoint)) {
	t.Helper()
	file := filepath.Join(dir, checkpointName)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c checkpoint
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	change(&c)
	b, _ = json.Marshal(c)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// In durability process a power cut may shorten the log. The log says so itself, with a new
// epoch; in durability always the same is damage.
func TestTailLostByAPowerCut(t *testing.T) {
	cut := func(c *checkpoint) { c.Seq, c.Hash, c.Clean, c.Boot = 900, event.Hash(nil), false, "before" }
	dir := filled(t, 5, Process)
	l, err := reopen(dir, Process)
	if err != nil {
		t.Fatal(err)
	}
	epoch := l.Epoch()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	editCheckpoint(t, dir, cut)
	l, err = reopen(dir, Process)
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Status(); !s.TailLost || s.Seq != 7 || l.Epoch() == epoch || l.Epoch() == "" {
		t.Errorf("status %+v, epoch before %s", s, epoch)
	}
	epoch = l.Epoch()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = reopen(dir, Process); err != nil {
		t.Fatal(err)
	}
	if s := l.Status(); s.TailLost || s.Seq != 7 || l.Epoch() != epoch {
		t.Errorf("the next start: %+v", s)
	}
	_ = l.Close()

	dir = filled(t, 5, Always)
	editCheckpoint(t, dir, cut)
	wantDamage(t, dir, Always, damageOlder)
}

// Stopping uncleanly in the same life of the machine takes nothing in durability process.
func TestUncleanStopOfTheSameBootKeepsTheEpoch(t *testing.T) {
	dir := filled(t, 5, Process)
	editCheckpoint(t, dir, func(c *checkpoint) { c.Clean = false })
	l, err := reopen(dir, Process)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if s := l.Status(); s.TailLost && bootID() != "" {
		t.Errorf("status %+v", s)
	}
}

// A checkpoint or format file that is not one stops the start; so does a newer format.
func TestUnreadableStateIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		kind       fault.Kind
	}{
		"checkpoint":   {checkpointName, "{", fault.LogDamaged},
		"format":       {formatName, "{", fault.LogDamaged},
		"newer format": {formatName, `{"format":99}`, fault.Unavailable},
	} {
		dir := filled(t, 1, Process)
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := reopen(dir, Process); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}
