package proc_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"webcodex/internal/proc"
)

// A four-byte character is cut at every offset by the bound and by every split of the writes.
func TestTailCutsBetweenCharacters(t *testing.T) {
	const keep = 64
	text := strings.Repeat("😀é漢a", 40)
	for lead := range 8 {
		for split := 1; split < 9; split++ {
			whole := strings.Repeat("x", lead) + text
			tail := proc.NewTail(keep)
			for rest := []byte(whole); len(rest) > 0; {
				n := min(split, len(rest))
				tail.Write(rest[:n])
				rest = rest[n:]
			}
			got, dropped := tail.Text(12_000)
			if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) || !strings.HasSuffix(whole, got) {
				t.Fatalf("lead %d split %d: %q", lead, split, got)
			}
			if dropped+int64(len(got)) != int64(len(whole)) || tail.Total() != int64(len(whole)) {
				t.Fatalf("lead %d split %d: %d dropped, %d kept of %d", lead, split, dropped, len(got), len(whole))
			}
			if len(got) < keep-3 {
				t.Fatalf("lead %d split %d: only %d of %d bytes kept", lead, split, len(got), keep)
			}
		}
	}
}

// Whatever is written in whatever pieces, a reader that follows by offsets sees it all once.
func TestTailDeltasJoinToTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tail := proc.NewTail(256)
		var whole, seen []byte
		var at int64
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			p := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("aé漢😀\n")), 0, 20, -1).Draw(t, "text"))
			cut := rapid.IntRange(0, len(p)).Draw(t, "cut")
			for _, part := range [][]byte{p[:cut], p[cut:]} {
				tail.Write(part)
				whole = append(whole, part...)
				delta, next, ok := tail.From(at, 1000, true)
				if !ok {
					t.Fatalf("offset %d of %d is lost", at, tail.Total())
				}
				if !utf8.ValidString(delta) || strings.ContainsRune(delta, utf8.RuneError) {
					t.Fatalf("delta %q", delta)
				}
				seen, at = append(seen, delta...), next
			}
		}
		delta, _, _ := tail.From(at, 1000, false)
		if seen = append(seen, delta...); string(seen) != string(whole) {
			t.Fatalf("saw %q of %q", seen, whole)
		}
	})
}

// A reader may begin at any time, in the middle of a character too: what it is shown first and
// what follows join without a gap, a double or a broken character.
func TestTailBaselineJoinsTheDeltas(t *testing.T) {
	whole := "a é 漢 😀 z"
	for first := range len(whole) + 1 {
		tail := proc.NewTail(256)
		tail.Write([]byte(whole[:first]))
		base, at := tail.Last(1000, true)
		tail.Write([]byte(whole[first:]))
		delta, _, ok := tail.From(at, 1000, false)
		if !ok || base+delta != whole {
			t.Errorf("begun at %d: %q and %q", first, base, delta)
		}
	}
	tail := proc.NewTail(256)
	tail.Write([]byte("end \xf0\x9f"))
	if base, at := tail.Last(1000, false); base != "end \ufffd\ufffd" && base != "end \ufffd" || at != 6 {
		t.Errorf("an ended stream shows %q to %d", base, at)
	}
}

func TestTailKnowsLostOffsets(t *testing.T) {
	tail := proc.NewTail(16)
	tail.Write([]byte(strings.Repeat("0123456789", 10)))
	if _, _, ok := tail.From(3, 100, true); ok {
		t.Error("an offset before what is kept was served")
	}
	if _, _, ok := tail.From(101, 100, true); ok {
		t.Error("an offset beyond the end was served")
	}
	tail.Write([]byte{0xff, 'a', 0xf0, 0x9f})
	if got, _ := tail.Text(100); !utf8.ValidString(got) {
		t.Errorf("not UTF-8: %q", got)
	}
}
