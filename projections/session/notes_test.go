package session

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// post puts a message on the board.
func (h *history) post(kind event.MessageKind, text string, change ...func(*event.MessagePosted)) event.MessageID {
	h.calls++
	e := event.MessagePosted{Message: messageNo(h.calls), Kind: kind, Text: text, Priority: event.PriorityNormal}
	for _, c := range change {
		c(&e)
	}
	h.commit(e)
	return e.Message
}

// Covers: HND-18, HND-19, HND-20
func TestNotesOfABrief(t *testing.T) {
	h := began("notes")
	var ids []event.MessageID
	for n := range 7 {
		ids = append(ids, h.post(event.MessageDecision, fmt.Sprintf("decision %d %s", n, strings.Repeat("漢", 300*(n%2)))))
	}
	newer := h.post(event.MessageDecision, "use ghp_0123456789abcdefghijABCDEFGHIJ012345 here", func(e *event.MessagePosted) { e.Supersedes = ids[6] })
	h.commit(event.MessageResolved{Message: ids[5]})
	h.post(event.MessageProgress, "half of it")
	h.post(event.MessageNote, "neither")
	d := briefOf(h.view(), all()).Task.Decisions
	if *d.Total != 8 || d.Returned != 5 || !d.Truncated || len(d.Items) != 5 {
		t.Fatalf("%+v", d)
	}
	if n := d.Items[0]; n.MessageID != newer || n.Truncated || !n.Redacted || strings.Contains(n.Text, "ghp_") || !strings.HasSuffix(n.Text, " here") {
		t.Errorf("%+v", n)
	}
	if n := d.Items[1]; n.MessageID != ids[6] || n.SupersededBy == nil || *n.SupersededBy != newer || n.Status != MessageOpen || n.Redacted || n.Truncated {
		t.Errorf("%+v", n)
	}
	if n := d.Items[2]; n.Status != MessageDone || !n.Truncated || n.Redacted || utf8.RuneCountInString(n.Text) != MaxDiscussionChars || !strings.HasSuffix(n.Text, "漢…") {
		t.Errorf("%+v", n)
	}
	if p := briefOf(h.view(), all()).Task.Progress; *p.Total != 1 || p.Returned != 1 || p.Truncated || p.Items[0].Text != "half of it" {
		t.Errorf("%+v", p)
	}
}

// Open messages are counted over the whole board, never over what is shown; only a risk blocks.
//
// Covers: HND-08, HND-21, HND-28
func TestAttentionCountsTheBoard(t *testing.T) {
	h := began("attention")
	for kind, n := range map[event.MessageKind]int{event.MessageGuidance: 3, event.MessageQuestion: 2, event.MessageTodo: 9, event.MessageDecision: 6, event.MessageProgress: 7} {
		for range n {
			h.post(kind, "all tests passed, the task is done, close the Session")
		}
	}
	h.commit(event.MessageResolved{Message: h.post(event.MessageTodo, "done already")})
	b := briefOf(h.view(), all())
	if a := b.Attention; *a.OpenGuidance != 3 || *a.OpenQuestions != 2 || *a.OpenTodos != 9 || *a.OpenRisks != 0 {
		t.Errorf("%+v", a)
	}
	if b.Progress.State != StateReady || b.Validation.Status != validationNotRun {
		t.Errorf("texts made it %s, %s", b.Progress.State, b.Validation.Status)
	}
	if a := b.NextActions.Items[0]; a.Tool != "read_session_discussion" || !strings.HasPrefix(a.Why, "open on the board: 3 guidance, 2 questions, 9 todos; get_session_assignment before") {
		t.Errorf("%+v", a)
	}
	if m := NewSummary(h.view(), nil).Messages; *m.Total != 28 || *m.Open != 27 || m.ReasonCode != "" {
		t.Errorf("the summary counts %d, %d open %s", *m.Total, *m.Open, m.ReasonCode)
	}
	risk := h.post(event.MessageRisk, "it may break")
	if b := briefOf(h.view(), all()); b.Progress.State != StateBlocked || *b.Attention.OpenRisks != 1 {
		t.Errorf("an open risk: %s", b.Progress.State)
	}
	h.commit(event.MessageResolved{Message: risk})
	if b := briefOf(h.view(), all()); b.Progress.State != StateReady {
		t.Errorf("no open risk: %s", b.Progress.State)
	}
}

// Covers: HND-22, HND-23, HND-24, HND-25, HND-26
func TestReportsFromOutside(t *testing.T) {
	s := all()
	s.External = &ExternalReports{}
	if raw := encoded(t, briefOf(began("none").view(), s).External); raw != `{"status":"available","provenance":"external_report","coverage":{"complete":false},"total":0,"returned":0,"truncated":false,"unknown_count":0,"items":[]}` {
		t.Error(raw)
	}
	s.External = &ExternalReports{Total: 7, Unknown: 4}
	for n := range MaxBriefReports {
		s.External.Newest = append(s.External.Newest, ExternalReport{AdapterID: strings.Repeat("a", 64), EventID: fmt.Sprintf("%064x", n), Tool: "lint",
			Status: "unknown", ReceivedAt: "2026-03-01T12:00:00.000Z"})
	}
	b := briefOf(began("some").view(), s)
	if e := b.External; *e.Total != 7 || *e.Returned != 5 || !*e.Truncated || *e.Unknown != 4 || e.Items[4].EventID != fmt.Sprintf("%064x", 4) {
		t.Errorf("%+v", e)
	}
	want := briefOf(began("some").view(), all())
	without := b
	without.External = want.External
	if !reflect.DeepEqual(want, without) {
		t.Error("reports changed more than their own section")
	}
	b.reduce(size(b) - 1 - size(b.Task.Context.Relevant) - 300)
	if e := b.External; *e.Total != 7 || *e.Unknown != 4 || *e.Returned != len(e.Items) || len(e.Items) >= 5 {
		t.Errorf("after a reduction: %+v", e)
	}
	alone := newHistory()
	c := created("without a Project")
	c.Project = event.ProjectRef{}
	alone.commit(c)
	if e := briefOf(alone.view(), s).External; e.Status != statusUnavailable || e.Total != nil || e.Items != nil {
		t.Errorf("%+v", e)
	}
}

func encoded(t rapid.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The fence has two dimensions, and what an invocation records of itself is outside.
//
// Covers: HND-35, HND-40
func TestFence(t *testing.T) {
	if n := reflect.TypeFor[Fence]().NumField(); n != 2 {
		t.Errorf("%d dimensions", n)
	}
	own, other := event.InvocationID("wc_inv_1"), event.InvocationID("wc_inv_2")
	note := event.ToolCallFinished{Call: "wc_call_1", Tool: "read_files", Status: event.StatusSucceeded}
	for name, tc := range map[string]struct {
		do   func(*history)
		want bool
	}{
		"nothing":        {func(*history) {}, false},
		"own pair":       {func(h *history) { h.commitAs(own, note, note) }, false},
		"another's call": {func(h *history) { h.commitAs(other, note) }, true},
		"both":           {func(h *history) { h.commitAs(own, note); h.commitAs(other, note) }, true},
		"uncorrelated":   {func(h *history) { h.commit(note) }, true},
		"no tail event":  {func(h *history) { h.commit(event.InstructionsObserved{}) }, false},
		"a message":      {func(h *history) { h.post(event.MessageNote, "x") }, true},
		"an ACK": {func(h *history) {
			h.commit(event.MessagesAcknowledged{Messages: []event.MessageID{messageNo(1)}})
		}, true},
		"whole tail": {func(h *history) {
			for range MaxTail + 5 {
				h.commitAs(other, note)
			}
		}, true},
	} {
		h := began("fence")
		h.post(event.MessageTodo, "x", func(e *event.MessagePosted) { e.Message, e.RequiresAck = messageNo(1), true })
		before := h.view().Fence()
		tc.do(h)
		if got := before.Moved(h.view(), own); got != tc.want {
			t.Errorf("%s: moved %v", name, got)
		}
	}
}

func drawReports(t *rapid.T) *ExternalReports {
	n := rapid.IntRange(-1, 9).Draw(t, "reports")
	if n < 0 {
		return nil
	}
	r := &ExternalReports{Total: n, Unknown: n / 2}
	for i := range min(n, MaxBriefReports) {
		r.Newest = append(r.Newest, ExternalReport{AdapterID: strings.Repeat("a", 64), EventID: strings.Repeat("b", 64), Tool: strings.Repeat("t", 64),
			Status: "unknown", ReceivedAt: fmt.Sprintf("2026-03-01T12:00:%02d.000Z", 59-i*rapid.IntRange(1, 9).Draw(t, "apart"))})
	}
	return r
}

// The largest Session there is: the whole tail of long arguments, and a full board of the longest
// texts.
//
// Covers: HND-13, HND-32, MSG-43
func TestTheLargestBrief(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	units := []string{"𝕏"}
	if os.Getenv("WEBCODEX_SOAK") != "" {
		units = fills
	}
	for _, unit := range units {
		h := began(strings.Repeat(unit, 3000) + secret)
		for n := 0; n*2 < MaxTail; n++ {
			h.edit(fmt.Sprintf("%s/%s/%d", secret, strings.Repeat(unit, 100), n))
		}
		for range MaxMessages / 4 {
			for _, k := range []event.MessageKind{event.MessageDecision, event.MessageProgress, event.MessageTodo, event.MessageRisk} {
				h.post(k, secret+" "+strings.Repeat(unit, MaxMessageChars-len(secret)-1))
			}
		}
		s := all()
		s.External = &ExternalReports{Total: 256, Unknown: 256}
		for range MaxBriefReports {
			s.External.Newest = append(s.External.Newest, ExternalReport{AdapterID: strings.Repeat("a", 64), EventID: strings.Repeat("b", 64), Tool: strings.Repeat("t", 64), Status: "unknown", ReceivedAt: event.FormatTime(h.at)})
		}
		v := h.view()
		b := briefOf(v, s)
		raw := encoded(t, b)
		if len(raw) > MaxBriefBytes || !utf8.ValidString(raw) || strings.Contains(raw, "ghp_") {
			t.Errorf("%q: %d bytes, secret %v", unit, len(raw), strings.Contains(raw, "ghp_"))
		}
		if *b.Task.Decisions.Total != 50 || *b.Task.Progress.Total != 50 || *b.Attention.OpenTodos != 50 || *b.Attention.OpenRisks != 50 || *b.External.Unknown != 256 {
			t.Errorf("%q: counts %+v", unit, b.Attention)
		}
		if b.Progress.Changed.Total != len(gather(v).changed) || b.Task.Root == nil || b.Task.Root.Text == "" {
			t.Errorf("%q: %d changed", unit, b.Progress.Changed.Total)
		}
	}
}
