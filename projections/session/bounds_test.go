package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// nasty is a Session full of what costs most in JSON.
func nasty(fill string, edits int, again bool, unknown int) View {
	h := newHistory()
	h.commit(created(strings.Repeat(fill, 240)), event.InstructionAccepted{Text: strings.Repeat(fill, 4000)})
	for n := range edits {
		h.edit(strings.Repeat("漢", 150)+fmt.Sprint("x", n), fmt.Sprintf("%s/%d", strings.Repeat("<", 400), n))
		h.read(fmt.Sprintf("%s/r%d", strings.Repeat("&", 500), n))
		h.testOf(fmt.Sprintf("%s%d", strings.Repeat(fill, 100), n%9), false, n)
		h.job(n, event.InstanceID(fill))
	}
	if again {
		h.commit(event.InstructionAccepted{Text: strings.Repeat(fill, 3999)})
	}
	for n := range unknown {
		h.call(strings.Repeat(fill, 300), func(f *event.ToolCallFinished) {
			f.Execution, f.Effect.State = execution(1000+n).ID, event.OutcomeUnknown
			f.ErrorSummary, f.Status = strings.Repeat(fill, 240), event.StatusFailed
		})
	}
	return h.view()
}

func nastySnapshot(status string) Snapshot {
	s := all()
	s.Workspace = &Workspace{Status: status, Reason: strings.Repeat("<", 999), Branch: strings.Repeat("<", 999),
		Head: strings.Repeat("<", 999), Conflicts: 1 << 40, ChangedFiles: 1 << 40}
	return s
}

// Covers: HND-32
func TestBriefBytesOnHostileText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := nastySnapshot(rapid.SampledFrom([]string{"dirty", "blocked", "unavailable", ""}).Draw(t, "status"))
		s.SessionChanged = rapid.Bool().Draw(t, "changed")
		var v View
		if rapid.IntRange(0, 3).Draw(t, "random") == 0 {
			v = drawHistory(t, 20).view()
		} else {
			v = nasty(rapid.SampledFrom(fills).Draw(t, "fill"), rapid.IntRange(0, 30).Draw(t, "edits"), rapid.Bool().Draw(t, "again"),
				rapid.IntRange(0, 40).Draw(t, "unknown"))
		}
		b := briefOf(v, s)
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > MaxBriefBytes {
			t.Fatalf("brief of %d bytes", len(raw))
		}
		if !utf8.Valid(raw) {
			t.Fatal("brief is not UTF-8")
		}
		if n := size(b.Task.Context); n > MaxContextBytes {
			t.Fatalf("context of %d bytes", n)
		}
	})
}

// sections is what the reduction order names, in its order; what comes first is emptied before
// the next one loses anything.
func sections(b Brief) []int {
	c := b.Task.Context
	context := len(c.Relevant.Items) + len(c.Decisions.Items) + len(c.Progress.Items) + len(c.Locations.Items) + len(c.Steps.Items)
	if c.Repeated != nil {
		context++
	}
	return []int{context, len(b.Progress.Recent.Items), len(b.Progress.Changed.Items),
		len(b.Validation.Failures.Items), len(b.Task.Decisions.Items) + len(b.Task.Progress.Items) + len(b.External.Items), len(b.NextActions.Items), len(b.Task.Root.Text) + len(b.Task.Latest.Text)}
}

// Covers: HND-33
func TestBriefReductionOrder(t *testing.T) {
	h := began(strings.Repeat("root instruction ", 40))
	for n := range 12 {
		h.edit(fmt.Sprintf("src/changed_%02d.go", n))
		h.read(fmt.Sprintf("src/read_%02d.go", n))
		h.testOf(fmt.Sprintf("target:%d", n%5), false, 2)
	}
	h.commit(event.InstructionAccepted{Text: strings.Repeat("latest instruction ", 40), Mode: event.ModeNormal})
	h.job(1, testServer)
	for n := range 2 {
		h.post(event.MessageDecision, fmt.Sprint("decision ", n))
		h.post(event.MessageProgress, fmt.Sprint("progress ", n))
	}
	snap := all()
	snap.External = &ExternalReports{Total: 9, Unknown: 3, Newest: []ExternalReport{{Tool: "lint", Status: "unknown", ReceivedAt: event.FormatTime(h.at)}}}
	full := briefOf(h.view(), snap)
	if n := size(full); n > MaxBriefBytes {
		t.Fatalf("the unreduced brief has %d bytes; the test needs one that fits", n)
	}
	before := sections(full)
	for budget := size(full); budget > 0; budget -= 16 {
		b := full // reduce replaces what it shortens, full stays
		b.reduce(budget)
		now := sections(b)
		for i := range now {
			if now[i] < before[i] { // a section shrank: all before it are empty
				for j := range i {
					if now[j] != 0 {
						t.Fatalf("budget %d: section %d shrank while %d still holds %d", budget, i, j, now[j])
					}
				}
			}
		}
		kept := full
		kept.Task, kept.Progress.Changed, kept.Progress.Recent = b.Task, b.Progress.Changed, b.Progress.Recent
		kept.Validation.Failures, kept.NextActions, kept.External = b.Validation.Failures, b.NextActions, b.External
		if !reflect.DeepEqual(kept, b) {
			t.Fatalf("budget %d: something else than the order names was reduced", budget)
		}
		for _, l := range []struct{ total, returned, items int }{
			{b.Progress.Changed.Total, b.Progress.Changed.Returned, len(b.Progress.Changed.Items)},
			{*b.Task.Decisions.Total, b.Task.Decisions.Returned, len(b.Task.Decisions.Items)},
			{*b.Task.Progress.Total, b.Task.Progress.Returned, len(b.Task.Progress.Items)},
			{*b.External.Total, *b.External.Returned, len(b.External.Items)},
			{b.Validation.Failures.Total, b.Validation.Failures.Returned, len(b.Validation.Failures.Items)}} {
			if l.returned != l.items || l.total < l.returned {
				t.Fatalf("budget %d: counts lie: %+v", budget, l)
			}
			if *b.External.Total != 9 || *b.External.Unknown != 3 || !*b.External.Truncated {
				t.Fatalf("budget %d: %+v", budget, b.External)
			}
		}
		if size(b) > budget && now[len(now)-1] > 0 {
			t.Fatalf("budget %d: %d bytes and excerpts left", budget, size(b))
		}
		before = now
	}
	if before[len(before)-1] != 0 {
		t.Fatalf("at no budget the excerpts still hold %d bytes", before[len(before)-1])
	}
}

// fills are the characters that cost most in JSON.
var fills = []string{"<", "\x01", "\u2028", "𝕏", "\xff", `"`, "漢"}

// Covers: LST-06
func TestListBytesOnHostileTitles(t *testing.T) {
	for _, fill := range fills {
		cores := make([]Core, MaxListLimit)
		for i := range cores {
			cores[i] = Core{ID: testID, Title: strings.Repeat(fill, 1000), Lifecycle: Active, Mode: event.ModeNormal, Project: testProject}
		}
		p := NewPage(cores, 0, ptr(MaxListLimit))
		if n := size(p); n > MaxListBytes {
			t.Fatalf("page of %d bytes", n)
		}
		for _, r := range p.Sessions {
			if n := utf8.RuneCountInString(r.Title); n > MaxTitleChars {
				t.Fatalf("title of %d characters", n)
			}
		}
	}
	secret := NewPage([]Core{{ID: testID, Title: "use ghp_0123456789abcdefghijABCDEFGHIJ012345 to push", Lifecycle: Active}}, 0, nil)
	if title := secret.Sessions[0].Title; strings.Contains(title, "ghp_") || !strings.Contains(title, "to push") {
		t.Fatalf("title %q", title)
	}
}

func TestOtherViewsStayBounded(t *testing.T) {
	for i, fill := range fills {
		v, s := nasty(fill, 30, i%2 == 0, 40), nastySnapshot("dirty")
		for _, limit := range []int{1, 50, 77, 200} {
			if sum := NewSummary(v, &limit); size(sum) > MaxAnswerBytes || len(sum.Events) == 0 {
				t.Fatalf("summary of %d bytes for %d of %d events", size(sum), len(sum.Events), limit)
			}
			h := NewHandoff(v, s, true, &limit)
			if l := h.Ledger; size(h) > MaxAnswerBytes || len(l.Events) == 0 || l.EventsTruncated != (len(l.Events) < l.EventsTotal) {
				t.Fatalf("diagnostic handoff of %d bytes with %d of %d events", size(h), len(l.Events), limit)
			}
		}
		if n := size(NewFeedback(v, s, 1000)); n > MaxFeedbackBytes {
			t.Fatalf("feedback of %d bytes", n)
		}
		if n := size(NewFinish(v, s, FinishOptions{IncludeHandoff: true, IncludeDiff: true, IncludeHygiene: true})); n > 40_000 {
			t.Fatalf("closeout of %d bytes", n)
		}
	}
}
