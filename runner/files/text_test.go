package files

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"webcodex/runner/wire"
)

func deleteEdit(old string) wire.TextEdit { return wire.TextEdit{Kind: wire.DeleteExact, OldText: old} }

func insertEdit(kind, anchor, text string) wire.TextEdit {
	return wire.TextEdit{Kind: kind, OldText: anchor, NewText: &text}
}

func nth(e wire.TextEdit, n int) wire.TextEdit { e.Occurrence = &n; return e }

func TestEditsApplied(t *testing.T) {
	for _, tc := range []struct {
		name, before string
		edits        []wire.TextEdit
		after        string
	}{
		{"replace", "a b c", []wire.TextEdit{replaceEdit("b", "x")}, "a x c"},
		{"delete", "a b c", []wire.TextEdit{deleteEdit(" b")}, "a c"},
		{"insert before", "a\nb\n", []wire.TextEdit{insertEdit(wire.InsertBefore, "b", "x\n")}, "a\nx\nb\n"},
		{"insert after", "a\nb\n", []wire.TextEdit{insertEdit(wire.InsertAfter, "a\n", "x\n")}, "a\nx\nb\n"},
		{"replace by nothing", "abc", []wire.TextEdit{replaceEdit("b", "")}, "ac"},
		{"all of the file", "abc", []wire.TextEdit{replaceEdit("abc", "")}, ""},
		{"occurrence", "x x x", []wire.TextEdit{nth(replaceEdit("x", "y"), 2)}, "x y x"},
		{"two occurrences", "x x x", []wire.TextEdit{nth(replaceEdit("x", "1"), 1), nth(replaceEdit("x", "3"), 3)}, "1 x 3"},
		{"order does not matter", "a b", []wire.TextEdit{replaceEdit("b", "B"), replaceEdit("a", "A")}, "A B"},
		{"found in the old text only", "a b", []wire.TextEdit{replaceEdit("a", "b"), replaceEdit("b", "c")}, "b c"},
		{"touching", "ab", []wire.TextEdit{replaceEdit("a", "1"), replaceEdit("b", "2")}, "12"},
		{"insertions stay at their anchors", "ab", []wire.TextEdit{insertEdit(wire.InsertBefore, "b", "2"),
			insertEdit(wire.InsertAfter, "a", "1")}, "a12b"},
		{"insertions at one anchor keep their order", "ab", []wire.TextEdit{insertEdit(wire.InsertAfter, "a", "1"),
			insertEdit(wire.InsertAfter, "a", "2")}, "a12b"},
		{"insertion at the edge of a replacement", "ab", []wire.TextEdit{replaceEdit("a", "A"), insertEdit(wire.InsertAfter, "a", "1"),
			insertEdit(wire.InsertBefore, "a", "0")}, "0A1b"},
		{"LF text in a CRLF file", "a\r\nb\r\nc\r\n", []wire.TextEdit{replaceEdit("a\nb", "x\ny\nz")}, "x\r\ny\r\nz\r\nc\r\n"},
		{"CRLF insertion", "a\r\nb\r\n", []wire.TextEdit{insertEdit(wire.InsertAfter, "a", "\nx")}, "a\r\nx\r\nb\r\n"},
		{"last line without an end", "a\r\nb", []wire.TextEdit{insertEdit(wire.InsertAfter, "b", "\nc\n")}, "a\r\nb\r\nc\r\n"},
		{"bare LF kept", "a\r\nb\nc\r\n", []wire.TextEdit{replaceEdit("a", "A")}, "A\r\nb\nc\r\n"},
		{"bare LF inside kept", "a\r\nb\nc\r\nd\r\n", []wire.TextEdit{replaceEdit("a\nb\nc\n", "a\nb\nC\n")}, "a\r\nb\nC\r\nd\r\n"},
		{"line added before a bare LF", "a\r\nb\nc\r\n", []wire.TextEdit{replaceEdit("a\nb\nc", "new\na\nb\nc")}, "new\r\na\r\nb\nc\r\n"},
		{"carriage return means bytes", "a\r\nb\nc\r\n", []wire.TextEdit{replaceEdit("a\r\n", "a\n")}, "a\nb\nc\r\n"},
		{"new text with a carriage return", "a\nb\n", []wire.TextEdit{replaceEdit("a\n", "a\r\n")}, "a\r\nb\n"},
		{"lone carriage return", "a\rb\r\r\nc", []wire.TextEdit{replaceEdit("c", "d")}, "a\rb\r\r\nd"},
		{"bytes that are no UTF-8 stay", "\xff\xfe a \xc3", []wire.TextEdit{replaceEdit("a", "é")}, "\xff\xfe é \xc3"},
	} {
		got, conflicts := applyEdits([]byte(tc.before), tc.edits)
		if string(got) != tc.after || conflicts != nil {
			t.Errorf("%s: %q %+v, want %q", tc.name, got, conflicts, tc.after)
		}
	}
}

func TestEditConflicts(t *testing.T) {
	for _, tc := range []struct {
		name, before string
		edits        []wire.TextEdit
		want         []conflict
	}{
		{"none", "abc", []wire.TextEdit{replaceEdit("x", "y")}, []conflict{{0, wire.MatchNotFound, 0}}},
		{"none in an empty file", "", []wire.TextEdit{replaceEdit("x", "y")}, []conflict{{0, wire.MatchNotFound, 0}}},
		{"two", "x x", []wire.TextEdit{replaceEdit("x", "y")}, []conflict{{0, wire.MultipleMatches, 2}}},
		{"overlapping matches are two", "aaa", []wire.TextEdit{replaceEdit("aa", "b")}, []conflict{{0, wire.MultipleMatches, 2}}},
		{"two by either line end", "a\r\nb a\nb", []wire.TextEdit{replaceEdit("a\nb", "y")}, []conflict{{0, wire.MultipleMatches, 2}}},
		{"occurrence too high", "x x", []wire.TextEdit{nth(replaceEdit("x", "y"), 3)}, []conflict{{0, wire.OccurrenceOutOfRange, 2}}},
		{"overlap", "abc", []wire.TextEdit{replaceEdit("ab", "1"), replaceEdit("bc", "2")}, []conflict{{1, wire.OverlappingEdits, 0}}},
		{"same place twice", "abc", []wire.TextEdit{replaceEdit("b", "1"), replaceEdit("b", "2")}, []conflict{{1, wire.OverlappingEdits, 0}}},
		{"insertion inside a replacement", "abc", []wire.TextEdit{replaceEdit("abc", "1"), insertEdit(wire.InsertAfter, "b", "2")},
			[]conflict{{1, wire.OverlappingEdits, 0}}},
		{"one in the other, far apart in order", "abcdef", []wire.TextEdit{replaceEdit("abcdef", "1"), replaceEdit("b", "2"), replaceEdit("e", "3")},
			[]conflict{{1, wire.OverlappingEdits, 0}, {2, wire.OverlappingEdits, 0}}},
		{"all told", "x x", []wire.TextEdit{replaceEdit("x", "y"), replaceEdit("z", "y")},
			[]conflict{{0, wire.MultipleMatches, 2}, {1, wire.MatchNotFound, 0}}},
		{"more than can be counted", strings.Repeat("x", 5000), []wire.TextEdit{replaceEdit("x", "y")},
			[]conflict{{0, wire.MultipleMatches, wire.MaxOccurrence + 1}}},
		{"carriage return does not match LF", "a\nb", []wire.TextEdit{replaceEdit("a\r\nb", "y")}, []conflict{{0, wire.MatchNotFound, 0}}},
	} {
		got, conflicts := applyEdits([]byte(tc.before), tc.edits)
		if got != nil || !slices.Equal(conflicts, tc.want) {
			t.Errorf("%s: %q %+v, want %+v", tc.name, got, conflicts, tc.want)
		}
	}
}

// line is one line of the model's file.
type line struct{ text, end string }

func drawLines(t *rapid.T) []line {
	n := rapid.IntRange(1, 12).Draw(t, "n")
	lines := make([]line, n)
	for i := range lines {
		lines[i] = line{rapid.StringMatching(`[ab é]{0,4}`).Draw(t, "text"), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")}
	}
	if rapid.Bool().Draw(t, "open") {
		lines[n-1].end = ""
	}
	return lines
}

func join(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + l.end)
	}
	return b.String()
}

// The model: a file is a list of lines with their ends; replacing some whole lines, named by
// their text with LF, changes those lines and nothing else.
func TestEditingLinesIsLikeTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawLines(t)
		// A marker makes the edited lines unique.
		from := rapid.IntRange(0, len(lines)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(lines)-1).Draw(t, "to")
		lines[from].text = "<" + lines[from].text
		lines[to].text += ">"
		var old, want strings.Builder
		model := slices.Clone(lines)
		for i := from; i <= to; i++ {
			fresh := lines[i].text
			if rapid.Bool().Draw(t, "change") {
				fresh = rapid.StringMatching(`[xyz]{0,3}`).Draw(t, "fresh")
				model[i].text = fresh
			}
			old.WriteString(lines[i].text)
			want.WriteString(fresh)
			if i < to {
				old.WriteString("\n")
				want.WriteString("\n")
			}
		}
		got, conflicts := applyEdits([]byte(join(lines)), []wire.TextEdit{replaceEdit(old.String(), want.String())})
		if conflicts != nil || string(got) != join(model) {
			t.Fatalf("%q with %q for %q: %q, want %q (%+v)", join(lines), want.String(), old.String(), got, join(model), conflicts)
		}
	})
}

// Several edits at once give what the same edits give one after the other from the end, and
// bytes outside the matches never change.
func TestSeveralEditsAreLikeTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		var file, want bytes.Buffer
		var edits []wire.TextEdit
		for i := range n {
			gap := rapid.SampledFrom([]string{"", "..", "\r\n", "\n", "\xff", "é\r"}).Draw(t, "gap")
			file.WriteString(gap)
			want.WriteString(gap)
			token := "<" + strings.Repeat("i", i+1) + ">"
			file.WriteString(token)
			text := rapid.StringMatching(`[a-c]{0,3}`).Draw(t, "text")
			switch kind := rapid.SampledFrom([]string{"keep", wire.ReplaceExact, wire.DeleteExact, wire.InsertBefore, wire.InsertAfter}).Draw(t, "kind"); kind {
			case "keep":
				want.WriteString(token)
			case wire.DeleteExact:
				edits = append(edits, deleteEdit(token))
			case wire.ReplaceExact:
				edits = append(edits, replaceEdit(token, text))
				want.WriteString(text)
			case wire.InsertBefore:
				edits = append(edits, insertEdit(kind, token, text))
				want.WriteString(text + token)
			case wire.InsertAfter:
				edits = append(edits, insertEdit(kind, token, text))
				want.WriteString(token + text)
			}
		}
		edits = rapid.Permutation(edits).Draw(t, "order")
		got, conflicts := applyEdits(file.Bytes(), edits)
		if conflicts != nil || !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%q: %q, want %q (%+v)", file.Bytes(), got, want.Bytes(), conflicts)
		}
	})
}

// FuzzEdits holds one edit against a search by brute force: the same places match, and only
// the matched range changes, into new_text line ends aside.
func FuzzEdits(f *testing.F) {
	f.Add("a\r\nb\nc", "b", "x\ny", 0)
	f.Add("aaa", "aa", "", 2)
	f.Add("\r\n\r\n", "\n", "\n\n", 1)
	f.Add("a\r\r\nb", "\nb", "\nc", 0)
	f.Add("a\r\nb\r\n", "\r", "x", 1)
	f.Fuzz(func(t *testing.T, content, old, text string, occurrence int) {
		if old == "" || len(content) > 300 || occurrence > wire.MaxOccurrence {
			return
		}
		places := bruteForce(content, old)
		e, which := replaceEdit(old, text), 0
		if occurrence > 0 {
			e.Occurrence, which = &occurrence, occurrence-1
		}
		got, conflicts := applyEdits([]byte(content), []wire.TextEdit{e})
		if conflicts != nil {
			kind := wire.OccurrenceOutOfRange
			switch {
			case len(places) == 0:
				kind = wire.MatchNotFound
			case occurrence <= 0:
				kind = wire.MultipleMatches
			}
			if got != nil || conflicts[0].kind != kind || len(places) == 1 && which == 0 {
				t.Fatalf("%q in %q at %v: %+v", old, content, places, conflicts)
			}
			return
		}
		if which >= len(places) || occurrence <= 0 && len(places) != 1 {
			t.Fatalf("%q in %q at %v: no conflict", old, content, places)
		}
		middle, ok := strings.CutPrefix(string(got), content[:places[which][0]])
		middle, ok2 := strings.CutSuffix(middle, content[places[which][1]:])
		if !strings.Contains(old+text, "\r") {
			middle = strings.ReplaceAll(middle, "\r\n", "\n")
		}
		if !ok || !ok2 || middle != text {
			t.Fatalf("%q for %q in %q gave %q", text, old, content, got)
		}
	})
}

// bruteForce tries every range of content.
func bruteForce(content, old string) (places [][2]int) {
	exact := strings.Contains(old, "\r")
	inside := func(i int) bool { return i > 0 && i < len(content) && content[i-1] == '\r' && content[i] == '\n' }
	for from := range len(content) {
		for to := from + 1; to <= len(content); to++ {
			part := content[from:to]
			if !exact && !inside(from) && !inside(to) {
				part = strings.ReplaceAll(part, "\r\n", "\n")
			} else if !exact {
				continue
			}
			if part == old {
				places = append(places, [2]int{from, to})
			}
		}
	}
	return places
}
