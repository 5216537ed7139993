package bench

import (
	"math"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		values []float64
		p, out float64
	}{
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{1, 2, 3, 4}, 0.5, 2.5},
		{[]float64{7}, 0.95, 7},
		{[]float64{0, 10}, 0.05, 0.5},
	} {
		if got := percentile(c.values, c.p); math.Abs(got-c.out) > 1e-9 {
			t.Errorf("percentile(%v, %v) = %v, want %v", c.values, c.p, got, c.out)
		}
	}
}

// Pairs alternate their order, warm-ups are not counted, and the ratio reads the way asked.
func TestMeasure(t *testing.T) {
	var order []byte
	c := Comparison{Name: "x", Pairs: 20, Bar: 0.5, Speed: true,
		Ours:      func() time.Duration { order = append(order, 'o'); return 4 * time.Millisecond },
		Yardstick: func() time.Duration { order = append(order, 'y'); return 2 * time.Millisecond }}
	r := Measure(c)
	if r.Median != 0.5 || !r.Met || r.Pairs != 20 || r.OursMS != 4 || r.YardstickMS != 2 {
		t.Errorf("%+v", r)
	}
	if string(order[:4]) != "oyyo" || len(order) != 2*(20+warmups) {
		t.Errorf("order %s", order)
	}
	c.Speed, c.AtMost, c.Bar = false, true, 1.9
	if r = Measure(c); r.Median != 2 || r.Met || r.Sense != "<=" {
		t.Errorf("%+v", r)
	}
}
