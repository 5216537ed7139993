package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func anySealed(t *rapid.T, block int) sealed {
	first := rapid.Uint64().Draw(t, "first")
	return sealed{block: block, size: rapid.Int64Min(1).Draw(t, "size"), first: first,
		last: rapid.Uint64Min(first).Draw(t, "last"), sum: hex.EncodeToString(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "sum"))}
}

// What is written is read again. A file cut anywhere gives its whole lines and says that it
// is torn or no ledger; one byte changed anywhere is noticed, or leaves every fact as it was.
func TestLedgerRoundTripCutAndFlip(t *testing.T) {
	tmp := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		want := map[int]sealed{}
		for i := range rapid.IntRange(1, 5).Draw(t, "n") {
			want[i+1] = anySealed(t, i+1)
		}
		d := &dir{path: tmp}
		if err := d.writeLedger(want); err != nil {
			t.Fatal(err)
		}
		more := anySealed(t, 9)
		if err := d.appendLedger(more); err != nil {
			t.Fatal(err)
		}
		want[9] = more
		if got, torn, reason, err := d.readLedger(); err != nil || torn || reason != "" || !maps.Equal(got, want) {
			t.Fatalf("%v %v %q %v, want %v", got, torn, reason, err, want)
		}
		whole, _ := os.ReadFile(filepath.Join(tmp, ledgerName))
		cut := rapid.IntRange(0, len(whole)-1).Draw(t, "cut")
		got, torn, err := parseLedger(whole[:cut])
		lines := bytes.Count(whole[:cut], []byte("\n"))
		if ends := cut > 0 && whole[cut-1] == '\n'; cut < len(ledgerHead) && err == nil || cut >= len(ledgerHead) && (err != nil || torn == ends || len(got) != lines-1) {
			t.Fatalf("cut at %d: %d blocks of %d lines, torn %v, %v", cut, len(got), lines, torn, err)
		}
		at := rapid.IntRange(0, len(whole)-1).Draw(t, "at")
		flipped := bytes.Clone(whole)
		flipped[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		if got, torn, err := parseLedger(flipped); err == nil && !torn {
			t.Fatalf("byte %d flipped passes: %v", at, got)
		} else if err == nil {
			for i, s := range got {
				if want[i] != s {
					t.Fatalf("byte %d flipped gives %+v", at, s)
				}
			}
		}
	})
}

// Whatever lies in the file, what is read from it can be written and read again.
func FuzzParseLedger(f *testing.F) {
	s := sealed{block: 3, size: 100, first: 1, last: 9, sum: strings.Repeat("0", 64)}
	f.Add([]byte(ledgerHead + s.line()))
	f.Add([]byte(ledgerHead + s.line() + "4 "))
	f.Add([]byte("webcodex block ledger 2\n"))
	sum := sha256.Sum256(nil)
	f.Add(append([]byte(ledgerHead), sum[:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _, err := parseLedger(b)
		if err != nil {
			return
		}
		d := &dir{path: t.TempDir()}
		if err := d.writeLedger(got); err != nil {
			t.Fatal(err)
		}
		if again, torn, reason, err := d.readLedger(); err != nil || torn || reason != "" || !maps.Equal(got, again) {
			t.Fatalf("%v became %v (%v %q %v)", got, again, torn, reason, err)
		}
	})
}
