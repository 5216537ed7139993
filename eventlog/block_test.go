package eventlog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// The scan of JetStream's own files gives every commit that was appended, in order, with the
// bytes that were hashed.
func TestBlockScanReadsJetStreamsFiles(t *testing.T) {
	dir := manyBlocks(t, Always)
	index, err := blockIndexes(blockFile(dir, ""))
	if err != nil || len(index) < 3 {
		t.Fatalf("blocks %v, %v", index, err)
	}
	want := uint64(1)
	for _, i := range index {
		buf, err := os.ReadFile(blockFile(dir, strconv.Itoa(i)+blockSuffix))
		if err != nil {
			t.Fatal(err)
		}
		first, err := firstSeq(blockFile(dir, ""), i)
		if err != nil || first != want {
			t.Errorf("block %d begins with %d (%v), want %d", i, first, err, want)
		}
		s := newBlockScan(i, buf)
		for r, ok := s.next(); ok; r, ok = s.next() {
			if !r.intact || r.gone || r.seq != want {
				t.Fatalf("block %d: %d at %d intact %v gone %v, want sequence %d", i, r.seq, r.offset, r.intact, r.gone, want)
			}
			c, err := event.Decode(r.body)
			if err != nil || subjectOf(c.Aggregate) != string(r.subject) {
				t.Fatalf("sequence %d on %q: %v", r.seq, r.subject, err)
			}
			want++
		}
		if s.off != len(buf) {
			t.Errorf("block %d is read to %d of %d", i, s.off, len(buf))
		}
		if r, _ := newBlockScan(i+1, buf).next(); r.intact {
			t.Errorf("block %d passes for block %d", i, i+1)
		}
	}
	if _, err := firstSeq(t.TempDir(), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a block that is not there: %v", err)
	}
}

// A first record that cannot be read is damage, and an empty block has none.
func TestFirstSeqOfADamagedBlock(t *testing.T) {
	dir := t.TempDir()
	write := func(b []byte) {
		if err := os.WriteFile(filepath.Join(dir, "1.blk"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(nil)
	if _, err := firstSeq(dir, 1); !errors.Is(err, errNoRecord) {
		t.Errorf("empty: %v", err)
	}
	good, err := os.ReadFile(blockFile(filled(t, 3, Process), "1.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for at := range 120 {
		b := bytes.Clone(good)
		b[at] ^= 1
		write(b)
		if _, err := firstSeq(dir, 1); fault.KindOf(err) != fault.LogDamaged {
			t.Errorf("byte %d flipped: %v", at, err)
		}
	}
}

// A last record whose checksum ends in zeros was cut short, however few they are. It was not
// where a byte before them is another one, or where something lies behind it.
func TestZerosInsideTheLastChecksum(t *testing.T) {
	good := read(t, blockFile(filled(t, 3, Process), "1.blk"))
	for zeros := 1; zeros <= recordSum; zeros++ {
		b := bytes.Clone(good)
		clear(b[len(b)-zeros:])
		if bytes.Equal(b, good) {
			continue
		}
		flipped := bytes.Clone(b)
		flipped[len(b)-recordSum-3] ^= 1
		for name, c := range map[string]struct {
			block []byte
			torn  bool
		}{
			"cut":           {b, true},
			"zeros behind":  {append(bytes.Clone(b), make([]byte, 50)...), true},
			"another byte":  {flipped, zeros == recordSum},
			"a byte behind": {append(bytes.Clone(b), 1), false},
		} {
			byChance := name == "another byte" && zeros > 4 && zeros < recordSum // few bytes are compared
			if f := factsOf(1, c.block, 0); !f.bad() || f.torn != c.torn && !byChance {
				t.Errorf("%d zeros, %s: %+v", zeros, name, f)
			}
		}
	}
}

// Whatever lies in the file, the scan ends, stays inside it and gives nothing twice.
func FuzzBlockScan(f *testing.F) {
	f.Add([]byte{}, 1)
	f.Add(bytes.Repeat([]byte{0}, 100), 1)
	f.Add(bytes.Repeat([]byte{0xff}, 100), 3)
	f.Add(append([]byte{40, 0, 0, 0x80}, bytes.Repeat([]byte{1}, 80)...), 2)
	f.Fuzz(func(t *testing.T, b []byte, index int) {
		s, end := newBlockScan(index, b), 0
		for r, ok := s.next(); ok; r, ok = s.next() {
			if r.offset != end || r.size < recordHead+recordSum || len(r.subject)+len(r.body) > r.size {
				t.Fatalf("record %+v after byte %d", r, end)
			}
			end = r.offset + r.size
		}
		if s.off != end || end > len(b) {
			t.Fatalf("ends at %d, the last record at %d of %d", s.off, end, len(b))
		}
	})
}

// manyBlocks is a closed log over four small blocks, by three Sessions in turn.
func manyBlocks(t *testing.T, mode Durability) string {
	t.Helper()
	dir := t.TempDir()
	l := openSmall(t, dir, mode)
	var aggs []event.Aggregate
	for range 3 {
		aggs = append(aggs, event.SessionAggregate(event.NewSessionID()))
	}
	for i := range 42 {
		appendText(t, l, aggs[i%3], 2<<10)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// openSmall opens a log whose budget makes JetStream's blocks as small as they get, 32 KB.
func openSmall(t *testing.T, dir string, mode Durability, change ...func(*Options)) *Log {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, formatName), []byte(`{"format":1,"log_max_bytes":125000}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, append(change, func(o *Options) { o.Durability, o.MaxBytes = mode, 0 })...)
}

// appendText appends a commit with so many bytes of text.
func appendText(t *testing.T, l *Log, a event.Aggregate, size int) Receipt {
	t.Helper()
	d := draft(l, t, a)
	d.Reserve = true
	d.Events = []event.Event{event.InstructionAccepted{Text: strings.Repeat("x", size)}}
	r, err := l.Append(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
