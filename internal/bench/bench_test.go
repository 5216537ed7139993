package bench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
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

// Each bar has a file of its own, which a later figure of the same bar replaces.
func TestFigureLeavesAFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(FiguresEnv, dir)
	Figure(t, "a b", 7, 7, 3)
	Figure(t, "a b", 0, 7, 4)
	Figure(t, "a/b", 1, 7, 5)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	var all string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	for _, line := range []string{
		`{"bar":"a b","value":0,"limit":7,"n":4,"lo":0,"hi":0,"sense":"<=","met":true}`,
		`{"bar":"a/b","value":1,"limit":7,"n":5,"lo":1,"hi":1,"sense":"<=","met":true}`,
	} {
		if !strings.Contains(all, line+"\n") {
			t.Errorf("no line %s in\n%s", line, all)
		}
	}
}
