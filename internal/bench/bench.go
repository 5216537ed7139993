// Package bench compares two ways of doing the same work, in interleaved pairs: a machine's
// speed drifts, a ratio within a pair hardly does. Absolute times are printed and never
// judged. It is used by tests alone, named TestRatio… and run with WEBCODEX_BENCH=1.
package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

// Env must be set for a comparison to run.
const Env = "WEBCODEX_BENCH"

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
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
	if !r.Met {
		t.Errorf("%s: median %.3f, 90 %% of the ratios in [%.3f, %.3f], the bar is %s %.2f", r.Name, r.Median, r.Lo, r.Hi, r.Sense, r.Bar)
	}
}

// Figure prints a measured value beside its upper limit, from n measurements, and fails t when
// it is above: for what is no ratio, like bytes of memory.
func Figure(t *testing.T, name string, value, limit float64, n int) {
	t.Helper()
	r := Result{Name: name, Median: value, Lo: value, Hi: value, Bar: limit, Pairs: n, Sense: "<=", Met: value <= limit}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
	if !r.Met {
		t.Errorf("%s: %.3f, at most %.3f are allowed", name, value, limit)
	}
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
