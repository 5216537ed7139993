package files

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"strings"

	"webcodex/runner/wire"
)

// conflict is why an edit cannot be applied.
type conflict struct {
	edit    int
	kind    string
	matches int // of match conflicts; MaxOccurrence+1 means more
}

// splice replaces content[start:end].
type splice struct {
	start, end int
	text       []byte
	edit       int
	// late puts an insertion before its anchor behind one after the text that ends there: each
	// stays next to what it was anchored to.
	late int
}

// applyEdits gives content with all edits made, each found in content as it is. Bytes outside
// the matched ranges stay as they are. With conflicts the content is nil.
//
// A line feed in old_text matches either line end, and line feeds of new_text become the line
// end used at that place. Text that holds a carriage return is taken byte for byte.
func applyEdits(content []byte, edits []wire.TextEdit) ([]byte, []conflict) {
	v := newView(content)
	var splices []splice
	var conflicts []conflict
	for i, e := range edits {
		s, c := locate(v, e)
		if c != nil {
			c.edit = i
			conflicts = append(conflicts, *c)
			continue
		}
		s.edit = i
		splices = append(splices, s)
	}
	slices.SortStableFunc(splices, func(a, b splice) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.late, b.late),
			cmp.Compare(a.edit, b.edit))
	})
	end := 0
	for i, s := range splices {
		if i > 0 && s.start < end {
			conflicts = append(conflicts, conflict{edit: max(s.edit, splices[i-1].edit), kind: wire.OverlappingEdits})
		}
		end = max(end, s.end)
	}
	if len(conflicts) > 0 {
		slices.SortStableFunc(conflicts, func(a, b conflict) int { return cmp.Compare(a.edit, b.edit) })
		return nil, conflicts
	}
	var out bytes.Buffer
	from := 0
	for _, s := range splices {
		out.Write(content[from:s.start])
		out.Write(s.text)
		from = s.end
	}
	out.Write(content[from:])
	return out.Bytes(), nil
}

// view is a text with every CRLF read as LF, and the way back.
type view struct {
	raw, plain []byte
	// removed are the positions in plain of the line feeds that lost their carriage return.
	removed []int
}

func newView(raw []byte) *view {
	v := &view{raw: raw, plain: raw}
	if !bytes.Contains(raw, []byte("\r\n")) {
		return v
	}
	v.plain = make([]byte, 0, len(raw))
	for i, b := range raw {
		if b == '\r' && i+1 < len(raw) && raw[i+1] == '\n' {
			v.removed = append(v.removed, len(v.plain))
			continue
		}
		v.plain = append(v.plain, b)
	}
	return v
}

// origin is where position i of plain lies in raw; a line end begins at its carriage return.
func (v *view) origin(i int) int { return i + sort.SearchInts(v.removed, i) }

// locate finds the one place of an edit.
func locate(v *view, e wire.TextEdit) (splice, *conflict) {
	exact := strings.Contains(e.OldText, "\r")
	text := v.plain
	if exact {
		text = v.raw
	}
	found := occurrences(text, []byte(e.OldText))
	which := 0
	switch {
	case len(found) == 0:
		return splice{}, &conflict{kind: wire.MatchNotFound}
	case e.Occurrence == nil && len(found) > 1:
		return splice{}, &conflict{kind: wire.MultipleMatches, matches: len(found)}
	case e.Occurrence != nil && (*e.Occurrence < 1 || *e.Occurrence > min(len(found), wire.MaxOccurrence)):
		return splice{}, &conflict{kind: wire.OccurrenceOutOfRange, matches: len(found)}
	case e.Occurrence != nil:
		which = *e.Occurrence - 1
	}
	start, end := found[which], found[which]+len(e.OldText)
	if !exact {
		start, end = v.origin(start), v.origin(end)
	}
	s := splice{start: start, end: end}
	if e.NewText == nil {
		return s, nil
	}
	s.text = []byte(*e.NewText)
	verbatim := exact || strings.Contains(*e.NewText, "\r")
	switch e.Kind {
	case wire.InsertBefore:
		s.end, s.late = s.start, 1
	case wire.InsertAfter:
		s.start = s.end
	default:
		if !verbatim {
			s.text = replaceLines(v.raw[start:end], *e.NewText, lineEnd(v.raw, start))
		}
		return s, nil
	}
	if !verbatim {
		s.text = bytes.ReplaceAll(s.text, []byte("\n"), []byte(lineEnd(v.raw, start)))
	}
	return s, nil
}

// occurrences lists where old begins in text, overlapping ones too, so that nothing ambiguous
// passes for unique. It stops one past what an edit can name.
func occurrences(text, old []byte) []int {
	var found []int
	if len(old) == 0 {
		return nil
	}
	for from := 0; len(found) <= wire.MaxOccurrence; {
		i := bytes.Index(text[from:], old)
		if i < 0 {
			break
		}
		found = append(found, from+i)
		from += i + 1
	}
	return found
}

// lineEnd is the line end in use at a place: of its own line, else of the line before.
func lineEnd(raw []byte, place int) string {
	i := bytes.IndexByte(raw[place:], '\n')
	if i >= 0 {
		i += place
	} else if i = bytes.LastIndexByte(raw[:place], '\n'); i < 0 {
		return "\n"
	}
	if i > 0 && raw[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// replaceLines is text in the line ends of old, which it replaces: lines that are the same at
// the beginning and at the end keep theirs, so that a mixed file changes only where meant.
func replaceLines(old []byte, text, end string) []byte {
	if bytes.IndexByte(old, '\n') < 0 {
		return []byte(strings.ReplaceAll(text, "\n", end))
	}
	have, want := bytes.SplitAfter(old, []byte("\n")), strings.SplitAfter(text, "\n")
	same := func(h []byte, w string) bool {
		return string(h) == w || strings.HasSuffix(w, "\n") && string(h) == w[:len(w)-1]+"\r\n"
	}
	head := 0
	for head < min(len(have), len(want)) && same(have[head], want[head]) {
		head++
	}
	tail := 0
	for tail < min(len(have), len(want))-head && same(have[len(have)-1-tail], want[len(want)-1-tail]) {
		tail++
	}
	var out bytes.Buffer
	for i, w := range want {
		switch fromEnd := len(want) - i; {
		case i < head:
			out.Write(have[i])
		case fromEnd <= tail:
			out.Write(have[len(have)-fromEnd])
		default:
			line, ended := strings.CutSuffix(w, "\n")
			out.WriteString(line)
			if ended && len(have) == len(want) && bytes.HasSuffix(have[i], []byte("\n")) {
				out.WriteString(lineEnd(have[i], 0))
			} else if ended {
				out.WriteString(end)
			}
		}
	}
	return out.Bytes()
}
