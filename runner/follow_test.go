package runner

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"webcodex/runner/wire"
)

// Who follows a Job by its tokens sees what it printed, whole where it keeps up, and where it does
// not, that a part was lost: no character is cut by the border of a read, nothing is told twice, and
// the counts are exact, whatever is printed.
func TestAFollowerSeesWhatWasPrinted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		bytes   int64
		whole   string // what is seen without a gap; empty: there may be gaps
	}{
		"characters byte by byte": {`for b in 360 237 230 200 303 251 346 274 242 141 15 12; do printf "\\$b"; sleep 0.01; done`, 12, "😀é漢a\r\n"},
		"a cut last character":    {`printf 'a\360\237'`, 3, "a\ufffd\ufffd"},
		"bars of 10 MB":           {`yes "$(printf '\r[#########          ]  61%% eta')" | head -n 338250 | tr -d '\n'`, 338250 * 31, ""},
		"a line of 50 MB":         {"head -c 52428800 /dev/zero | tr '\\0' x", 50 << 20, ""},
		"binary":                  {"head -c 4194304 /dev/urandom", 4 << 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			o := g.job(c.command)
			g.accept(o)
			v, _ := g.observe(o.ID, "", 1, 0)
			seen, looks := v.StdoutDelta, 0
			for deadline := time.Now().Add(time.Minute); ; looks++ {
				next, _ := g.observe(o.ID, v.Token, 1, 20*time.Second)
				if !utf8.ValidString(next.StdoutDelta) || utf8.RuneCountInString(next.StdoutDelta) > observedChars/2 {
					t.Fatalf("a delta of %d bytes", len(next.StdoutDelta))
				}
				switch {
				case next.Reset && c.whole != "":
					t.Fatalf("a gap: %+v", next)
				case next.Reset:
					seen = "" // it begins anew
				}
				seen += next.StdoutDelta
				ended := next.Terminal && next.StdoutDelta == ""
				if v = next; ended || time.Now().After(deadline) {
					break
				}
			}
			if c.whole != "" && seen != c.whole {
				t.Errorf("seen %q in %d looks", seen, looks)
			}
			r := g.end()
			if !v.Terminal || r.Process.Stdout.Bytes != c.bytes {
				t.Errorf("%d bytes are counted, want %d", r.Process.Stdout.Bytes, c.bytes)
			}
			log, err := g.jobLog(t.Context(), g.p, wire.JobLogIn{ID: string(o.ID), Stream: wire.Stdout, Lines: 1, MaxBytes: maxLogBytes})
			if err != nil || log.Stdout.Bytes != c.bytes || log.Stdout.NextOffset != c.bytes || !utf8.ValidString(log.Stdout.Text) {
				t.Errorf("log %d bytes to %d of %d, %v", len(log.Stdout.Text), log.Stdout.NextOffset, log.Stdout.Bytes, err)
			}
			if c.whole == "" && name != "binary" && !strings.HasSuffix(seen, log.Stdout.Text[len(log.Stdout.Text)-20:]) {
				t.Errorf("the follower does not end where the log does: %.40q", seen[max(0, len(seen)-40):])
			}
		})
	}
}
