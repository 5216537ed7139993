package session

import (
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

// What another message stands for now waits for nobody: it is neither counted nor does it block,
// and what the counts say is what the steps show.
//
// Covers: HND-08, HND-27, MSG-49
func TestASupersededMessageWaitsForNobody(t *testing.T) {
	h := began("risks")
	first := h.post(event.MessageRisk, "it may break")
	h.post(event.MessageTodo, "measure it")
	second := h.post(event.MessageRisk, "it may break on Mondays", func(e *event.MessagePosted) { e.Supersedes = first })
	b := briefOf(h.view(), all())
	if *b.Attention.OpenRisks != 1 || *b.Attention.OpenTodos != 1 || b.Progress.State != StateBlocked || b.Task.Context.Steps.Total != 2 {
		t.Errorf("%d risks, %s, %+v", *b.Attention.OpenRisks, b.Progress.State, b.Task.Context.Steps)
	}
	h.commit(event.MessageResolved{Message: second, Resolution: "it does not"})
	b = briefOf(h.view(), all())
	if *b.Attention.OpenRisks != 0 || b.Progress.State != StateReady {
		t.Errorf("%d risks, %s", *b.Attention.OpenRisks, b.Progress.State)
	}
}

// Where commands ran in a tree that somebody changed, a brief does not say that they changed it.
//
// Covers: HND-27
func TestWhoChangedTheTreeIsNotKnown(t *testing.T) {
	h := began("commands")
	h.call("run_shell", nil)
	s := all()
	s.Workspace = &Workspace{Status: "dirty", ChangedFiles: 1}
	told := func() (State, string, string) {
		v := h.view()
		b := briefOf(v, s)
		detail := ""
		for _, a := range NewFinish(v, s, FinishOptions{}).Advisories {
			if a.Code == "changes_not_validated" {
				detail = a.Detail
			}
		}
		return b.Progress.State, b.NextActions.Items[0].Why, detail
	}
	if state, why, detail := told(); state != StateNeedsProof || strings.Contains(why+detail, "files changed") || !strings.HasPrefix(why, detail) {
		t.Errorf("%s: %q, %q", state, why, detail)
	}
	h.edit("a.go")
	if state, why, detail := told(); state != StateNeedsProof || !strings.HasPrefix(why, "files changed") || !strings.HasPrefix(why, detail) {
		t.Errorf("%s: %q, %q", state, why, detail)
	}
}
