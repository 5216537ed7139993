package session

import (
	"strings"

	"webcodex/internal/redact"
)

// reduce brings the brief within budget bytes in a fixed order (HND-33): the task context,
// recent files, changed paths, failure identities, next actions, at last the characters of
// the excerpts. Lifecycle, mode, states, counts and the basis always stay.
func (b *Brief) reduce(budget int) {
	steps := []func() bool{b.Task.Context.shrink, b.Progress.Recent.drop, b.Progress.Changed.drop,
		b.Validation.Failures.drop, b.NextActions.drop}
	for _, step := range steps {
		for size(b) > budget && step() {
		}
	}
	if over := size(b) - budget; over > 0 {
		b.shorten(budget)
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
