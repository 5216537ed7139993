package session

import (
	"encoding/json"
	"strings"
	"testing"
)

func lookedAt() FinishOptions {
	o := FinishOptions{IncludeHandoff: true, IncludeDiff: true, IncludeHygiene: true,
		Diff:    &DiffSummary{Files: 500, Additions: 7, Deletions: 3, Untracked: 1, Changed: List[DiffedFile]{Total: 500}},
		Hygiene: &HygieneSummary{Verdict: "problems", Problems: 300, Warnings: 2, Counts: map[string]int{"conflict_marker": 300}, Findings: List[HygieneFinding]{Total: 302}}}
	for range 200 {
		o.Diff.Changed.Items = append(o.Diff.Changed.Items, DiffedFile{Path: strings.Repeat("\x01", 256), Additions: ptr(1), Deletions: ptr(0)})
		o.Hygiene.Findings.Items = append(o.Hygiene.Findings.Items, HygieneFinding{Kind: "conflict_marker", Path: strings.Repeat("é", 256), Line: 9})
	}
	return o
}

// What was observed is told within bounds, with its real totals; problems make an advisory, also
// where the verdict alone is asked for. What was not asked for, or could not be observed, says so.
//
// Covers: STA-23
func TestCloseoutSections(t *testing.T) {
	v, s := worked().view(), all()
	f := NewFinish(v, s, lookedAt())
	if f.Diff.Status != statusAvailable || f.Diff.Changed.Total != 500 || !f.Diff.Changed.Truncated || f.Diff.Changed.Returned == 0 ||
		f.Hygiene.Status != statusAvailable || f.Hygiene.Findings.Total != 302 || len(f.Hygiene.Findings.Items) > MaxCloseoutFindings {
		t.Errorf("%+v %+v", f.Diff, f.Hygiene)
	}
	advised := func(f Finish) bool {
		for _, a := range f.Advisories {
			if a.Code == "hygiene_problems" {
				return strings.Contains(a.Detail, "300 problems")
			}
		}
		return false
	}
	o := lookedAt()
	o.SummaryOnly = true
	if short := NewFinish(v, s, o); !advised(f) || !advised(short) || short.Diff != nil || short.Hygiene != nil || short.Verdict.Verdict != f.Verdict.Verdict {
		t.Errorf("%+v %+v", f.Verdict, short)
	}
	o = lookedAt()
	o.Diff, o.Hygiene, o.IncludeDiff = nil, nil, false
	f = NewFinish(v, s, o)
	b, err := json.Marshal([]any{f.Diff, f.Hygiene})
	if want := `[{"status":"not_requested"},{"status":"unavailable","reason_code":"hygiene_unavailable"}]`; err != nil || string(b) != want || advised(f) {
		t.Errorf("%s", b)
	}
}

func TestCloseoutStaysBounded(t *testing.T) {
	for i, fill := range fills {
		v, s := nasty(fill, 30, i%2 == 0, 40), nastySnapshot("dirty")
		if n := size(NewFinish(v, s, lookedAt())); n > 40_000 {
			t.Fatalf("closeout of %d bytes", n)
		}
	}
}
