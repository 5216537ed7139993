package patch

import "strings"

// Kinds of a Conflict, as those of the other edits (ERG-11).
const (
	MatchNotFound   = "match_not_found"
	MultipleMatches = "multiple_matches"
)

// Conflict is a hunk that does not fit the text.
type Conflict struct {
	Hunk int
	Kind string
	// Line of the text where the hunk was expected to begin, PatchLine where the patch has it,
	// both from 1. DiffersAt is the line of the text that is the first to be another one there,
	// 0 where the text ends before.
	Line, PatchLine, DiffersAt int
	Matches                    int // places where it would fit
}

// Applied is a text after a patch.
type Applied struct {
	Text string
	// Moved are the hunks that were found elsewhere than stated, with the distance in lines.
	Moved []Move
}

// Move is one hunk that was found elsewhere than stated.
type Move struct{ Hunk, Lines int }

// Apply gives what becomes of a text. A hunk belongs where it says, shifted as the one before it
// was; where it does not fit there, it is applied at the one place further on where all its old
// lines stand, and at none where there are two. Every line must be the same, byte by byte; only
// where the patch has no CR, the CR of a text's line ends is passed over and kept, and added lines
// get the line end of their neighbour.
func (f File) Apply(text string) (Applied, []Conflict) {
	a := &applier{lines: splitLines(text), ids: map[string]int32{}, lenient: !f.hasCR()}
	a.text = make([]int32, len(a.lines))
	for i, l := range a.lines {
		a.text[i] = a.id(l)
	}
	var moved []Move
	var conflicts []Conflict
	for i, h := range f.Hunks {
		at, c := a.place(h)
		if c.Kind != "" {
			c.Hunk, c.PatchLine = i, h.At
			conflicts = append(conflicts, c)
			continue
		}
		if h.OldLines > 0 {
			if d := at - (h.OldStart - 1); d != 0 {
				moved = append(moved, Move{i, d})
			}
			a.shift = at - (h.OldStart - 1)
		}
		a.write(h, at)
	}
	if len(conflicts) > 0 {
		return Applied{}, conflicts
	}
	a.copyTo(len(a.lines))
	return Applied{Text: a.out.String(), Moved: moved}, nil
}

func (f File) hasCR() bool {
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if strings.Contains(l.Text, "\r") {
				return true
			}
		}
	}
	return false
}

type applier struct {
	lines   []string
	text    []int32 // ids of lines
	ids     map[string]int32
	lenient bool // the CR of line ends does not count
	done    int  // lines of the text that are written
	shift   int  // of the last hunk
	out     strings.Builder
}

// id makes equal lines equal numbers.
func (a *applier) id(line string) int32 {
	if a.lenient {
		if l, ok := strings.CutSuffix(line, "\r\n"); ok {
			line = l + "\n"
		}
	}
	n, known := a.ids[line]
	if !known {
		n = int32(len(a.ids))
		a.ids[line] = n
	}
	return n
}

// place finds where a hunk applies, or says why nowhere.
func (a *applier) place(h Hunk) (int, Conflict) {
	var old []int32
	atEnd := false
	for _, l := range h.Lines {
		if l.Mark != '+' {
			old = append(old, a.id(l.Text))
		}
		if l.Mark != '-' {
			atEnd = !strings.HasSuffix(l.Text, "\n")
		}
	}
	if len(old) == 0 {
		if len(a.lines) == 0 {
			return 0, Conflict{}
		}
		return 0, Conflict{Kind: MatchNotFound, Line: 1, DiffersAt: 1}
	}
	fits := func(at int) bool {
		return at >= a.done && at+len(old) <= len(a.text) && (!atEnd || at+len(old) == len(a.text))
	}
	want := h.OldStart - 1 + a.shift
	differs := 0
	if fits(want) {
		if differs = firstDifference(a.text[want:], old); differs < 0 {
			return want, Conflict{}
		}
	}
	found, matches := 0, 0
	eachMatch(a.text, old, func(at int) {
		if fits(at) {
			found = at
			matches++
		}
	})
	switch matches {
	case 1:
		return found, Conflict{}
	case 0:
		c := Conflict{Kind: MatchNotFound, Line: want + 1}
		if fits(want) {
			c.DiffersAt = want + differs + 1
		}
		return 0, c
	}
	return 0, Conflict{Kind: MultipleMatches, Line: want + 1, Matches: matches}
}

// firstDifference is the index where text stops being old, -1 where all of it is there.
func firstDifference(text, old []int32) int {
	for i, id := range old {
		if text[i] != id {
			return i
		}
	}
	return -1
}

// eachMatch tells every place of needle in text, in one pass however alike their lines are.
func eachMatch(text, needle []int32, each func(at int)) {
	fall := make([]int, len(needle))
	for i, k := 1, 0; i < len(needle); i++ {
		for k > 0 && needle[i] != needle[k] {
			k = fall[k-1]
		}
		if needle[i] == needle[k] {
			k++
		}
		fall[i] = k
	}
	for i, k := 0, 0; i < len(text); i++ {
		for k > 0 && text[i] != needle[k] {
			k = fall[k-1]
		}
		if text[i] == needle[k] {
			k++
		}
		if k == len(needle) {
			each(i - k + 1)
			k = fall[k-1]
		}
	}
}

func (a *applier) copyTo(line int) {
	for ; a.done < line; a.done++ {
		a.out.WriteString(a.lines[a.done])
	}
}

// write makes the hunk's change at a place where it fits.
func (a *applier) write(h Hunk, at int) {
	a.copyTo(at)
	crlf := a.lenient && at < len(a.lines) && strings.HasSuffix(a.lines[at], "\r\n")
	for _, l := range h.Lines {
		switch l.Mark {
		case '+':
			if text, ended := strings.CutSuffix(l.Text, "\n"); ended && crlf {
				a.out.WriteString(text + "\r\n")
			} else {
				a.out.WriteString(l.Text)
			}
			continue
		case ' ':
			a.out.WriteString(a.lines[a.done])
		}
		if line := a.lines[a.done]; a.lenient && strings.HasSuffix(line, "\n") {
			crlf = strings.HasSuffix(line, "\r\n")
		}
		a.done++
	}
}
