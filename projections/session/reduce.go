package session

import (
	"strings"

	"webcodex/internal/redact"
)

// reduce brings the brief within budget bytes in a fixed order (HND-33): the task context,
// recent files, changed paths, failure identities, notes and reports from outside, checkpoints,
// next actions, at last the characters of the excerpts. Lifecycle, mode, states, counts and the basis always
// stay.
func (b *Brief) reduce(budget int) {
	within(b, budget, b.Task.Context.shed, b.Progress.Recent.shed, b.Progress.Changed.shed,
		b.Validation.Failures.shed, b.shedSaid, b.Checkpoints.shed, b.NextActions.shed)
	if size(b) > budget {
		b.shorten(budget)
	}
}

// shedSaid takes away the oldest of what others said, a note or a report from outside (HND-34).
func (b *Brief) shedSaid(int) bool {
	oldest, drop := "", func() {}
	older := func(at string, how func()) {
		if oldest == "" || at < oldest {
			oldest, drop = at, how
		}
	}
	for _, n := range []*Notes{&b.Task.Progress, &b.Task.Decisions} {
		if len(n.Items) > 0 {
			older(n.Items[len(n.Items)-1].CreatedAt, n.drop)
		}
	}
	if n := len(b.External.Items); n > 0 {
		older(b.External.Items[n-1].ReceivedAt, b.External.drop)
	}
	drop()
	return oldest != ""
}

// within applies the steps in order, each until it has nothing left, as long as v is over budget.
func within(v any, budget int, steps ...func(over int) bool) {
	over := size(v) - budget
	for _, step := range steps {
		for over > 0 && step(over) {
			over = size(v) - budget
		}
	}
}

// shorten cuts both excerpts to the longest common length that fits; a latest instruction
// that equals the root stays equal (HND-14).
func (b *Brief) shorten(budget int) {
	root, latest := b.Task.Root, b.Task.Latest
	low, high := 0, MaxExcerptChars // low fits or is the least there is, high does not fit
	for low+1 < high {
		mid := (low + high) / 2
		b.Task.Root, b.Task.Latest = shorter(root, mid), shorter(latest, mid)
		if size(b) <= budget {
			low = mid
		} else {
			high = mid
		}
	}
	b.Task.Root, b.Task.Latest = shorter(root, low), shorter(latest, low)
}

func shorter(e *Excerpt, chars int) *Excerpt {
	if e == nil {
		return nil
	}
	t, cutOff := cut(e.Text, chars)
	return &Excerpt{Text: t, Truncated: e.Truncated || cutOff}
}

func containsMark(s string) bool { return strings.Contains(s, redact.Mark) }
