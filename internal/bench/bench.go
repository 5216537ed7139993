// Package bench compares two ways of doing the same work, in interleaved pairs: a machine's
// speed drifts, a ratio within a pair hardly does. Absolute times are printed and never
// judged. It is used by tests alone, named TestRatio… and run with WEBCODEX_BENCH=1.
package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Env must be set for a comparison to run.
const Env = "WEBCODEX_BENCH"

// FiguresEnv names a directory in which every line that is printed is a file too: go test shows
// nothing of what a passing test prints, so make shows these.
const FiguresEnv = "WEBCODEX_FIGURES"

// MinPairs is the fewest pairs a comparison may rest on.
const MinPairs = 20

// warmups is how many pairs run first and are not counted.
const warmups = 2

// Comparison is a piece of work done by Ours and by the yardstick.
type Comparison struct {
	Name string
	// Pairs is at least MinPairs; 0 means MinPairs.
	Pairs int
	// Bar is what the good end of the interval of the ratios must reach: at least Bar, or at
	// most Bar with AtMost.
	Bar    float64
	AtMost bool
	// Ours and Yardstick do one round and give its time. Preparation stays outside of it.
	Ours, Yardstick func() time.Duration
	// Speed says how the ratio is read: true gives yardstick time / our time (our rate as a
	// share of the yardstick's), false gives our time / yardstick time.
	Speed bool
}

// Result is the line that is printed: which bar, the value, its limit, and from how many pairs.
type Result struct {
	Name   string  `json:"bar"`
	Median float64 `json:"value"`
	Bar    float64 `json:"limit"`
	Pairs  int     `json:"n"`
	// Lo and Hi are the 5th and the 95th percentile of the ratios.
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
	// Sense is ">=" or "<=".
	Sense string `json:"sense"`
	Met   bool   `json:"met"`
	// OursMS and YardstickMS are medians of one round in milliseconds, for orientation.
	OursMS      float64 `json:"ours_ms,omitempty"`
	YardstickMS float64 `json:"yardstick_ms,omitempty"`
}

// Run does a comparison, prints one JSON line, and fails t when the bar is missed. Without
// Env it skips.
func Run(t *testing.T, c Comparison) {
	t.Helper()
	Skip(t)
	r := Measure(c)
	r.tell(t)
	if !r.Met {
		t.Errorf("%s: median %.3f, 90 %% of the ratios in [%.3f, %.3f], the bar is %s %.2f", r.Name, r.Median, r.Lo, r.Hi, r.Sense, r.Bar)
	}
}

// Figure prints a measured value beside its upper limit, from n measurements, and fails t when
// it is above: for what is no ratio, like bytes of memory or commits that were lost. It runs
// without Env too.
func Figure(t *testing.T, name string, value, limit float64, n int) {
	t.Helper()
	r := Result{Name: name, Median: value, Lo: value, Hi: value, Bar: limit, Pairs: n, Sense: "<=", Met: value <= limit}
	r.tell(t)
	if !r.Met {
		t.Errorf("%s: %.3f, at most %.3f are allowed", name, value, limit)
	}
}

// tell prints the line, and writes it where FiguresEnv says.
func (r Result) tell(t *testing.T) {
	t.Helper()
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.Write(line.Bytes())
	if dir := os.Getenv(FiguresEnv); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, fileName(r.Name)), line.Bytes(), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// fileName is a name of letters, digits and dashes; the sum tells apart what only other
// characters do.
func fileName(bar string) string {
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, bar)
	return fmt.Sprintf("%.60s-%08x.json", short, crc32.ChecksumIEEE([]byte(bar)))
}

// Skip ends the test unless Env is set; call it before costly preparation.
func Skip(t *testing.T) {
	t.Helper()
	if os.Getenv(Env) == "" {
		t.Skip("set " + Env + "=1 to measure")
	}
}

// Measure runs the pairs, each in the other order than the one before.
func Measure(c Comparison) Result {
	n := max(c.Pairs, MinPairs)
	ratios, ours, yard := make([]float64, 0, n), make([]float64, 0, n), make([]float64, 0, n)
	for i := range n + warmups {
		var a, b time.Duration
		if i%2 == 0 {
			a, b = c.Ours(), c.Yardstick()
		} else {
			b, a = c.Yardstick(), c.Ours()
		}
		if i < warmups {
			continue
		}
		ours, yard = append(ours, ms(a)), append(yard, ms(b))
		if c.Speed {
			ratios = append(ratios, float64(b)/float64(a))
		} else {
			ratios = append(ratios, float64(a)/float64(b))
		}
	}
	return c.summarize(ratios, ours, yard)
}

func (c Comparison) summarize(ratios, ours, yard []float64) Result {
	r := Result{Name: c.Name, Pairs: len(ratios), Median: percentile(ratios, 0.5), Lo: percentile(ratios, 0.05),
		Hi: percentile(ratios, 0.95), Bar: c.Bar, Sense: ">=", OursMS: percentile(ours, 0.5), YardstickMS: percentile(yard, 0.5)}
	if c.AtMost {
		r.Sense, r.Met = "<=", r.Lo <= c.Bar
	} else {
		r.Met = r.Hi >= c.Bar
	}
	return r
}

// percentile interpolates between the two nearest values; p is in [0, 1].
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	at := p * float64(len(s)-1)
	low := int(at)
	if low+1 == len(s) {
		return s[low]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
