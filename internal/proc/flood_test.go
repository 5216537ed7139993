package proc_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"webcodex/internal/proc"
)

// printing runs a shell text with a program in it that repeats: emit COUNT TEXT.
func printing(t *testing.T, script string) (r ran, grown uint64) {
	t.Helper()
	c := command(t, 2*time.Minute, "sh", "-c", `emit() { yes "$2" | head -n "$1" | tr -d '\n'; }; `+script)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r = run(t, c)
	runtime.ReadMemStats(&after)
	if r.Code == nil {
		t.Fatalf("%+v %s", r.Exit, r.stderr())
	}
	return r, after.TotalAlloc - before.TotalAlloc
}

// Whatever a program prints, it is counted to the byte, its end is kept as valid text of bounded
// size, and nothing in it is believed: the exit status is the process's.
func TestOutputIsNeverBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		bytes  int64
		code   int
		tail   string
	}{
		"a forged status":   {"echo 'exit status 0'; echo PASS; echo 'ok  all'; exit 3", 27, 3, "ok  all\n"},
		"cursor moves":      {`printf 'FAIL\033[1A\033[2K\033[0GPASS\007\n'; exit 1`, 22, 1, "\x1b[0GPASS\a\n"},
		"bars of 10 MB":     {`emit 160000 "$(printf '\r[###############################         ]  61%% 00:00:01 eta')"; exit 0`, 160000 * 61, 0, "00:00:01 eta"},
		"binary of 10 MB":   {"head -c 10485760 /dev/urandom", 10 << 20, 0, ""},
		"zeros":             {"head -c 1048576 /dev/zero", 1 << 20, 0, "\x00\x00"},
		"a line of 50 MB":   {"head -c 52428800 /dev/zero | tr '\\0' x", 50 << 20, 0, "xxx"},
		"an unended escape": {`printf 'a\033]0;title'`, 10, 0, "]0;title"},
	} {
		t.Run(name, func(t *testing.T) {
			r, grown := printing(t, c.script)
			if r.out.Total() != c.bytes || *r.Code != c.code || r.LeftoverKilled {
				t.Errorf("%d bytes, want %d: %+v %s", r.out.Total(), c.bytes, r.Exit, r.stderr())
			}
			text, dropped := r.out.Text(proc.KeptChars)
			if !utf8.ValidString(text) || utf8.RuneCountInString(text) > proc.KeptChars || !strings.HasSuffix(text, c.tail) || dropped > c.bytes {
				t.Errorf("%d characters kept, %d bytes dropped, they end with %.40q", utf8.RuneCountInString(text), dropped, text[max(0, len(text)-40):])
			}
			if grown > 4<<20 {
				t.Errorf("%d bytes were allocated for it", grown)
			}
		})
	}
}

// Characters are cut by every border there is: of the pipe, of the reader's buffer, of what is
// kept. None is shown broken, and none is lost but by the bound.
func TestCharactersSurviveEveryBorder(t *testing.T) {
	dir := t.TempDir()
	for lead := range utf8.UTFMax {
		for _, char := range []string{"é", "漢", "🙂"} {
			whole := strings.Repeat("x", lead) + strings.Repeat(char, 200_000/len(char))
			file := filepath.Join(dir, strconv.Itoa(lead)+strconv.Itoa(len(char)))
			if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, block := range []string{"4093", "32769", "65537"} {
				c := command(t, time.Minute, "dd", "if="+file, "bs="+block, "status=none")
				r := run(t, c)
				text, dropped := r.out.Text(proc.KeptChars)
				if int64(len(whole)) != r.out.Total() || !strings.HasSuffix(whole, text) || strings.ContainsRune(text, utf8.RuneError) ||
					dropped+int64(len(text)) != r.out.Total() || utf8.RuneCountInString(text) != proc.KeptChars {
					t.Errorf("%d bytes before %s, blocks of %s: %d characters kept, %d of %d bytes dropped", lead, char, block,
						utf8.RuneCountInString(text), dropped, r.out.Total())
				}
			}
		}
	}
}
