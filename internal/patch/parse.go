package patch

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser walks the lines of a patch.
type parser struct {
	lines []string // with their line ends
	at    int      // index of the next line
	files []File
	hunks int
}

// Parse reads a whole patch: unified diffs, with git's headers or without. Text before the first
// file is passed over, as is a mail's signature; anything else between files is an error. A patch
// of which every line ends in CR LF was converted on its way and is read as if it had not been.
// The error is an *Error.
func Parse(text string) ([]File, error) {
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, bad(1, Malformed, "the patch is not text")
	}
	p := &parser{lines: splitLines(text)}
	if converted(p.lines) {
		for i, l := range p.lines {
			p.lines[i] = strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r") + "\n"
		}
	}
	for p.at < len(p.lines) {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if len(p.files) == 0 {
		return nil, bad(1, Empty, "the patch names no file: it needs --- and +++ lines, or git's diff header")
	}
	return p.files, nil
}

// splitLines cuts a text after each newline.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func converted(lines []string) bool {
	for i, l := range lines {
		if !strings.HasSuffix(l, "\r\n") && !(i == len(lines)-1 && !strings.HasSuffix(l, "\n")) {
			return false
		}
	}
	return len(lines) > 0
}

// head is the line at i without its line end, empty behind the last.
func (p *parser) head(i int) string {
	if i >= len(p.lines) {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(p.lines[i], "\n"), "\r")
}

// number is the line number of an index.
func number(i int) int { return i + 1 }

func (p *parser) next() error {
	line := p.head(p.at)
	switch {
	case strings.HasPrefix(line, "diff --git "):
		return p.gitFile()
	case strings.HasPrefix(line, "diff --cc "), strings.HasPrefix(line, "diff --combined "), strings.HasPrefix(line, "@@@"):
		return bad(number(p.at), Combined, "the diff of a merge has no single meaning; give one against one parent")
	case strings.HasPrefix(line, "--- ") && strings.HasPrefix(p.head(p.at+1), "+++ "):
		return p.plainFile()
	case strings.HasPrefix(line, "@@"):
		return bad(number(p.at), Malformed, "a hunk begins before its file is named")
	case len(p.files) > 0 && line == "-- ":
		p.at = len(p.lines) // the signature of a mail
		return nil
	case len(p.files) > 0 && line != "" && strings.IndexByte("+-\\ ", line[0]) >= 0:
		return bad(number(p.at), HunkCounts, "this line belongs to no hunk: the hunk before it has more lines than its head says")
	}
	p.at++
	return nil
}

func (p *parser) add(f File) error {
	if len(p.files) == MaxFiles {
		return bad(f.At, TooMany, "a patch has at most %d files", MaxFiles)
	}
	p.files = append(p.files, f)
	return nil
}

// plainFile reads a file that has --- and +++ alone.
func (p *parser) plainFile() error {
	f := File{At: number(p.at)}
	old, now, err := p.sides()
	if err != nil {
		return err
	}
	old, now = stripped(old, now)
	switch {
	case old == devNull && now == devNull:
		return bad(f.At, Malformed, "a file that is on neither side")
	case old == devNull:
		f.Kind, f.Path = Create, now
	case now == devNull:
		f.Kind, f.Path = Delete, old
	case old != now:
		return bad(f.At, NameMismatch, "the two sides name different files; a rename needs git's headers")
	default:
		f.Kind, f.Path = Edit, now
	}
	return p.body(f)
}

// devNull stands for a side that does not exist.
const devNull = "/dev/null"

// sides reads the --- and +++ lines.
func (p *parser) sides() (old, now string, err error) {
	for i, prefix := range []string{"--- ", "+++ "} {
		value, found := strings.CutPrefix(p.head(p.at), prefix)
		name, ok := sideName(value)
		if !found || !ok {
			return "", "", bad(number(p.at), Malformed, "a %sline that names a file is expected here", prefix)
		}
		if i == 0 {
			old = name
		} else {
			now = name
		}
		p.at++
	}
	return old, now, nil
}

// sideName takes the name from the rest of a --- or +++ line; a tab begins a time.
func sideName(value string) (string, bool) {
	if strings.HasPrefix(value, `"`) {
		name, rest, ok := unquote(value)
		return name, ok && name != "" && (rest == "" || rest[0] == '\t')
	}
	name, _, _ := strings.Cut(value, "\t")
	return name, name != ""
}

// stripped takes git's a/ and b/ off, where both sides have them.
func stripped(old, now string) (string, string) {
	a, okA := strings.CutPrefix(old, "a/")
	b, okB := strings.CutPrefix(now, "b/")
	if (okA || old == devNull) && (okB || now == devNull) {
		return a, b
	}
	return old, now
}

// body reads the hunks of a file and checks that they suit its kind.
func (p *parser) body(f File) error {
	for p.at < len(p.lines) && strings.HasPrefix(p.head(p.at), "@@") {
		if p.hunks++; p.hunks > MaxHunks {
			return bad(number(p.at), TooMany, "a patch has at most %d hunks", MaxHunks)
		}
		h, err := p.hunk()
		if err != nil {
			return err
		}
		if err := f.takes(h); err != nil {
			return err
		}
		f.Hunks = append(f.Hunks, h)
	}
	if len(f.Hunks) == 0 && f.Kind == Edit && f.Mode == "" {
		return bad(f.At, NothingToDo, "the file has neither a hunk nor a new mode")
	}
	return p.add(f)
}

// takes checks a further hunk of the file.
func (f File) takes(h Hunk) error {
	switch {
	case f.Kind == Create && (h.OldLines > 0 || len(f.Hunks) > 0):
		return bad(h.At, Malformed, "a new file has one hunk, with added lines alone")
	case f.Kind == Delete && (h.NewLines > 0 || len(f.Hunks) > 0):
		return bad(h.At, Malformed, "a deleted file has one hunk, with deleted lines alone")
	case f.Kind != Create && h.OldLines == 0 && (h.OldStart > 0 || len(f.Hunks) > 0):
		return bad(h.At, NoContext, "the hunk only adds lines, without a line of context that says where; make the diff with context")
	}
	if n := len(f.Hunks); n > 0 {
		if last := f.Hunks[n-1]; h.OldStart < last.OldStart+last.OldLines {
			return bad(h.At, HunkOrder, "the hunk begins before the end of the one before it")
		}
	}
	return nil
}

var hunkHead = regexp.MustCompile(`^@@ -(\d{1,8})(?:,(\d{1,8}))? \+(\d{1,8})(?:,(\d{1,8}))? @@(?: .*)?$`)

func (p *parser) hunk() (Hunk, error) {
	if strings.HasPrefix(p.head(p.at), "@@@") {
		return Hunk{}, bad(number(p.at), Combined, "the diff of a merge has no single meaning; give one against one parent")
	}
	m := hunkHead.FindStringSubmatch(p.head(p.at))
	if m == nil {
		return Hunk{}, bad(number(p.at), Malformed, "the head of a hunk is @@ -start,lines +start,lines @@")
	}
	h := Hunk{OldStart: count(m[1], 0), OldLines: count(m[2], 1), NewStart: count(m[3], 0), NewLines: count(m[4], 1), At: number(p.at)}
	if h.OldStart == 0 && h.OldLines > 0 || h.NewStart == 0 && h.NewLines > 0 {
		return h, bad(h.At, Malformed, "the lines of a file are counted from 1")
	}
	p.at++
	old, now := 0, 0
	for old < h.OldLines || now < h.NewLines {
		l, err := p.line(h, old, now)
		if err != nil {
			return h, err
		}
		if l.Mark != '+' {
			old++
		}
		if l.Mark != '-' {
			now++
		}
		if old > h.OldLines || now > h.NewLines {
			return h, bad(number(p.at-1), HunkCounts, "the hunk has more lines than its head says: -%d +%d", h.OldLines, h.NewLines)
		}
		h.Lines = append(h.Lines, l)
		if err := p.ending(&h, old, now); err != nil {
			return h, err
		}
	}
	if len(h.Lines) == 0 {
		return h, bad(h.At, Malformed, "the hunk has no lines")
	}
	return h, nil
}

// line reads one line of a hunk. One without anything is an empty line of context whose mark was
// lost, as editors do.
func (p *parser) line(h Hunk, old, now int) (Line, error) {
	if p.at >= len(p.lines) {
		return Line{}, bad(number(p.at-1), HunkCounts, "the patch ends in a hunk: -%d +%d lines of -%d +%d are there", old, now, h.OldLines, h.NewLines)
	}
	text := p.lines[p.at]
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // the last line of the patch
	}
	p.at++
	switch text[0] {
	case ' ', '+', '-':
		return Line{text[0], text[1:]}, nil
	case '\n':
		return Line{' ', text}, nil
	case '\r':
		if text == "\r\n" {
			return Line{' ', text}, nil
		}
	}
	return Line{}, bad(number(p.at-1), HunkCounts, "a line of a hunk begins with a space, + or -; -%d +%d lines of -%d +%d are there",
		old, now, h.OldLines, h.NewLines)
}

// ending reads the mark of a last line without a line end. On each side nothing comes after it.
func (p *parser) ending(h *Hunk, old, now int) error {
	if p.at >= len(p.lines) || !strings.HasPrefix(p.lines[p.at], "\\ ") {
		return nil
	}
	last := &h.Lines[len(h.Lines)-1]
	if last.Mark != '+' && old < h.OldLines || last.Mark != '-' && now < h.NewLines {
		return bad(number(p.at), Malformed, "a line without a line end is the last one of its side")
	}
	last.Text = strings.TrimSuffix(last.Text, "\n")
	p.at++
	return nil
}

func count(digits string, absent int) int {
	if digits == "" {
		return absent
	}
	n, _ := strconv.Atoi(digits) // at most eight digits
	return n
}
