package eventlog

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/internal/fault"
)

// snapshot is every file of a data directory but the lock.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == lockName {
			return err
		}
		b, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantSame(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := snapshot(t, dir)
	for name, b := range before {
		if now, there := after[name]; !there || now != b {
			t.Errorf("%s was changed", name)
		}
		delete(after, name)
	}
	for name := range after {
		t.Errorf("%s was made", name)
	}
}

// tornBehind is a log whose last commit, durable and seen by base and witness, is cut short
// behind the checkpoint file; whole is the block as it was written.
func tornBehind(t *testing.T) (dir string, base *index, whole []byte) {
	t.Helper()
	dir, base = t.TempDir(), newIndex()
	l := open(t, dir, over(base), func(o *Options) { o.Durability = Always })
	cp := read(t, filepath.Join(dir, checkpointName))
	a := aggregates(1)[0]
	mustAppend(t, l, a)
	mustAppend(t, l, a)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, checkpointName), cp)
	remove(t, blockFile(dir, indexName))
	whole = read(t, blockFile(dir, "1.blk"))
	write(t, blockFile(dir, "1.blk"), whole[:len(whole)-20])
	return dir, base, whole[:len(whole)-20]
}

func witnessOf(t *testing.T, b *index) func() (BaseCheckpoint, error) {
	at, err := b.restarted().Checkpoint()
	if err != nil || at.Seq == 0 {
		t.Fatalf("the base has nothing: %v", err)
	}
	return func() (BaseCheckpoint, error) { return at, nil }
}

// What the read models have seen is missed before JetStream touches a file, by a start and by
// who reads the files alone, and nothing is changed; also where the whole log is gone.
func TestWitnessRefusesBeforeAnythingIsCut(t *testing.T) {
	dir, base, _ := tornBehind(t)
	o := Options{Dir: dir, Witness: witnessOf(t, base)}
	for _, step := range []struct {
		gone   []string
		reason string
	}{{nil, damageTail}, {[]string{storeName, checkpointName, ledgerName}, damageGone}, {[]string{formatName}, damageGone}} {
		for _, name := range step.gone {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		before := snapshot(t, dir)
		for _, readOnly := range []bool{false, true} {
			o.ReadOnly = readOnly
			l, err := Open(context.Background(), o)
			if err == nil {
				_ = l.Close()
			}
			if f := fault.As(err); err == nil || f.Kind != fault.LogDamaged || f.Reason != step.reason {
				t.Errorf("without %v: %v", step.gone, err)
			}
		}
		r, err := VerifyFiles(context.Background(), o)
		if err == nil && (r.OK() || r.Damaged[0].Reason != step.reason) || err != nil && fault.As(err).Reason != step.reason {
			t.Errorf("without %v the files are found %+v, %v", step.gone, r, err)
		}
		wantSame(t, dir, before)
	}
}

// Repair holds the log against its witness before anything beside the log is touched.
func TestRepairAsksTheWitnessFirst(t *testing.T) {
	dir, base, _ := tornBehind(t)
	o := Options{Dir: dir, Witness: witnessOf(t, base)}
	done, err := Repair(context.Background(), o, func() ([]string, error) {
		t.Error("what is beside the log was touched")
		return nil, nil
	})
	if f := fault.As(err); err == nil || f.Reason != damageTail || len(done) != 0 {
		t.Errorf("%v, %v", done, err)
	}
	// One that cannot tell any more holds up nobody, and repair says what that leaves unknown.
	o.Witness = func() (BaseCheckpoint, error) { return BaseCheckpoint{}, errors.New("unreadable") }
	if r, err := VerifyFiles(context.Background(), o); err != nil || !r.OK() || !r.EndUnknown {
		t.Errorf("%+v, %v", r, err)
	}
	done, err = Repair(context.Background(), o, func() ([]string, error) { return []string{"beside"}, nil })
	if err != nil || len(done) < 2 || !strings.Contains(done[len(done)-2], "unknown beyond sequence") || done[len(done)-1] != "beside" {
		t.Errorf("%v, %v", done, err)
	}
}

// Without a witness JetStream has cut the record when the read models tell of it. However
// often that start is tried, the copy of the end as it was found stays, and a log that is
// accepted at last gives it its place.
func TestTailCopyStaysUntilALogIsAccepted(t *testing.T) {
	dir, base, found := tornBehind(t)
	for range 3 {
		l, err := Open(context.Background(), Options{Dir: dir, Base: base.restarted()})
		if err == nil {
			_ = l.Close()
			t.Fatal("a log without its end was opened")
		}
		if b := read(t, filepath.Join(dir, pendingCopyName, "1.blk")); !bytes.Equal(b, found) {
			t.Fatal("the copy is not what was found")
		}
	}
	l, err := reopen(dir, Always)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if b := read(t, filepath.Join(dir, tailCopyName, "1.blk")); !bytes.Equal(b, found) {
		t.Error("the accepted copy is not what was found")
	}
	if _, err := os.Stat(filepath.Join(dir, pendingCopyName)); !os.IsNotExist(err) {
		t.Errorf("the copy still waits: %v", err)
	}
}

// Blocks without the format file are no new log: nobody opens them with another budget, and
// repair writes the file again as it was.
func TestMissingFormatIsDamageThatRepairMends(t *testing.T) {
	dir := filled(t, 3, Always)
	format := read(t, filepath.Join(dir, formatName))
	remove(t, filepath.Join(dir, formatName))
	before := snapshot(t, dir)
	wantDamage(t, dir, Always, damageFormat)
	if _, err := VerifyFiles(context.Background(), Options{Dir: dir}); err == nil || fault.As(err).Reason != damageFormat {
		t.Errorf("the files are found %v", err)
	}
	wantSame(t, dir, before)
	done, err := Repair(context.Background(), Options{Dir: dir}, nil)
	if err != nil || len(done) != 1 || !strings.Contains(done[0], "budget of the log's stream") {
		t.Fatalf("%v, %v", done, err)
	}
	if now := read(t, filepath.Join(dir, formatName)); !bytes.Equal(now, format) {
		t.Errorf("the format is %q, was %q", now, format)
	}
}

// Reading the files alone finds what reading through JetStream finds, in a log that a kill
// left with a torn end and without meta files, and changes nothing.
func TestVerifyFilesChangesNothing(t *testing.T) {
	dir := manyBlocks(t, Always)
	clean, err := VerifyFiles(context.Background(), Options{Dir: dir})
	if err != nil || !clean.OK() || clean.Commits == 0 || clean.Blocks < 2 {
		t.Fatalf("%+v, %v", clean, err)
	}
	editCheckpoint(t, dir, func(c *checkpoint) { c.Clean, c.Seal = false, nil })
	remove(t, blockFile(dir, indexName))
	remove(t, filepath.Join(filepath.Dir(filepath.Dir(blockFile(dir, "1.blk"))), "meta.inf"))
	index, err := blockIndexes(filepath.Dir(blockFile(dir, "1.blk")))
	if err != nil {
		t.Fatal(err)
	}
	last := blockFile(dir, nameOf(index[len(index)-1]))
	b := read(t, last)
	write(t, last, append(b, b[:recordHead]...)) // a record that was being written
	before := snapshot(t, dir)
	r, err := VerifyFiles(context.Background(), Options{Dir: dir})
	if err != nil || !r.OK() || r.Commits != clean.Commits || r.Blocks != clean.Blocks {
		t.Errorf("%+v, %v; was %+v", r, err, clean)
	}
	wantSame(t, dir, before)
	l, err := Open(context.Background(), Options{Dir: dir, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if v, err := l.Verify(context.Background()); err != nil || !v.OK() || v.Commits != r.Commits || v.Blocks != r.Blocks {
		t.Errorf("JetStream reads %+v, %v; the files say %+v", v, err, r)
	}
}

// A log whose beginning was pruned is read from its files as JetStream reads it.
func TestVerifyFilesOfAPrunedLog(t *testing.T) {
	dir, base, aggs := t.TempDir(), newIndex(), aggregates(100)
	l := grown(t, dir, base, aggs)
	carryAll(t, l, aggs, 1)
	cut, _ := lastSealed(t, l)
	if err := l.Prune(context.Background(), cut, "operator"); err != nil {
		t.Fatal(err)
	}
	spread(t, l, aggs, 10)
	want, err := l.Verify(context.Background())
	if err != nil || !want.OK() {
		t.Fatalf("%+v, %v", want, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := VerifyFiles(context.Background(), Options{Dir: dir})
	if err != nil || !r.OK() || r.Commits != want.Commits {
		t.Errorf("%+v, %v; was %+v", r, err, want)
	}
	// Without the checkpoint's word the log.pruned of the log itself tells.
	editCheckpoint(t, dir, func(c *checkpoint) { c.Pruned = 0 })
	if r, err := VerifyFiles(context.Background(), Options{Dir: dir}); err != nil || !r.OK() {
		t.Errorf("log.pruned is in the log, but: %+v, %v", r, err)
	}
}
