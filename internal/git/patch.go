package git

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// maxPatchLine is what is kept of one line; the rest of it is hashed and left out.
const maxPatchLine = 64 << 10

// PatchFile is one file of a patch; paths are raw bytes.
type PatchFile struct {
	Path, Orig string
	Change     string
	Binary     bool
	// Bare tells that no hunk follows: binary, mode only, a pure rename, an empty file, or
	// unmerged without content.
	Bare bool
}

// PatchHunk heads one hunk. Old is the first parent's side where several are compared.
type PatchHunk struct {
	OldStart, OldLines, NewStart, NewLines int
	Section                                string
}

// Piece is what a PatchReader found: exactly one of File, Hunk and Line is set.
type Piece struct {
	File *PatchFile
	Hunk *PatchHunk
	// Line is a line of the hunk with its mark, without the newline, valid until the next call.
	Line []byte
	// Cut tells that the line was longer than what is kept.
	Cut bool
}

// PatchReader reads the unified diff that Repo.Patch streams, in bounded memory. Whatever it
// is given, it ends without an error but the reader's.
type PatchReader struct {
	in      *bufio.Reader
	sum     hash.Hash
	line    []byte // the current line
	cut     bool
	pending bool // line is read but not used
	inHunk  bool
	file    *PatchFile // being headed
	end     error
}

// NewPatchReader reads from in.
func NewPatchReader(in io.Reader) *PatchReader {
	return &PatchReader{in: bufio.NewReaderSize(in, 32<<10), sum: sha256.New()}
}

// Sum identifies everything read so far: equal sums after equally many pieces mean that the
// same was read.
func (p *PatchReader) Sum() string { return hex.EncodeToString(p.sum.Sum(nil)[:16]) }

// Next is the next piece; io.EOF after the last.
func (p *PatchReader) Next() (Piece, error) {
	for {
		if !p.pending {
			if err := p.read(); err != nil {
				return p.atEnd(err)
			}
		}
		p.pending = false
		switch {
		case p.inHunk && isContent(p.line):
			return Piece{Line: p.line, Cut: p.cut}, nil
		case bytes.HasPrefix(p.line, []byte("diff --")), bytes.HasPrefix(p.line, []byte("* Unmerged path ")):
			p.inHunk = false
			if p.file != nil {
				p.pending = true
				return p.emit(true), nil
			}
			p.file = headed(string(p.line))
		case bytes.HasPrefix(p.line, []byte("@@")):
			if p.file != nil {
				p.pending = true
				return p.emit(false), nil
			}
			if h, ok := hunkHead(string(p.line)); ok {
				p.inHunk = true
				return Piece{Hunk: h}, nil
			}
		case p.file != nil:
			p.file.header(string(p.line))
		}
	}
}

// emit hands out the file whose header has ended.
func (p *PatchReader) emit(bare bool) Piece {
	f := p.file
	p.file, f.Bare = nil, bare
	if f.Change == "" {
		f.Change = Modified
	}
	return Piece{File: f}
}

func (p *PatchReader) atEnd(err error) (Piece, error) {
	if errors.Is(err, io.EOF) && p.file != nil {
		return p.emit(true), nil
	}
	return Piece{}, err
}

// read takes the next line, keeping its first maxPatchLine bytes.
func (p *PatchReader) read() error {
	if p.end != nil {
		return p.end
	}
	p.line, p.cut = p.line[:0], false
	for {
		part, err := p.in.ReadSlice('\n')
		p.sum.Write(part)
		text := bytes.TrimSuffix(part, []byte("\n"))
		room := maxPatchLine - len(p.line)
		p.cut = p.cut || len(text) > room
		p.line = append(p.line, text[:min(room, len(text))]...)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			if p.end = err; len(p.line) > 0 && errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// isContent tells a line of a hunk from a header: only content starts with these.
func isContent(line []byte) bool {
	return len(line) == 0 || strings.IndexByte(" +-\\", line[0]) >= 0
}

var hunkLine = regexp.MustCompile(`^(@@+) ((?:-\d+(?:,\d+)? )+)\+(\d+)(?:,(\d+))? @@+(?: (.*))?$`)

func hunkHead(line string) (*PatchHunk, bool) {
	m := hunkLine.FindStringSubmatch(line)
	if m == nil {
		return nil, false
	}
	old, _, _ := strings.Cut(m[2], " ")
	start, lines, _ := strings.Cut(old[1:], ",")
	return &PatchHunk{OldStart: number(start, 0), OldLines: number(lines, 1), NewStart: number(m[3], 0),
		NewLines: number(m[4], 1), Section: m[5]}, true
}

func number(s string, absent int) int {
	if s == "" {
		return absent
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// headed starts a file from its first line.
func headed(line string) *PatchFile {
	if name, ok := strings.CutPrefix(line, "* Unmerged path "); ok {
		return &PatchFile{Path: unquote(name), Change: Unmerged}
	}
	for _, prefix := range []string{"diff --cc ", "diff --combined "} {
		if name, ok := strings.CutPrefix(line, prefix); ok {
			return &PatchFile{Path: unquote(name), Change: Unmerged}
		}
	}
	return &PatchFile{Path: sameName(strings.TrimPrefix(line, "diff --git "))}
}

// sameName takes the name from "a/N b/N"; where the two differ, other lines name the file.
func sameName(pair string) string {
	if strings.HasPrefix(pair, `"`) {
		if end := closing(pair); end > 0 {
			return strings.TrimPrefix(unquote(pair[:end]), "a/")
		}
		return ""
	}
	half := len(pair) / 2
	if len(pair)%2 == 0 || half < 3 || pair[half] != ' ' {
		return ""
	}
	a, b := pair[:half], pair[half+1:]
	if a[:2] != "a/" || b[:2] != "b/" || a[2:] != b[2:] {
		return ""
	}
	return a[2:]
}

// header reads one line between "diff" and the first hunk.
func (f *PatchFile) header(line string) {
	for _, h := range []struct {
		prefix string
		set    func(value string)
	}{
		{"--- ", func(v string) { f.side(v, "a/") }},
		{"+++ ", func(v string) { f.side(v, "b/") }},
		{"rename from ", func(v string) { f.Orig, f.Change = unquote(v), Renamed }},
		{"rename to ", func(v string) { f.Path = unquote(v) }},
		{"copy from ", func(v string) { f.Orig, f.Change = unquote(v), Copied }},
		{"copy to ", func(v string) { f.Path = unquote(v) }},
		{"new file mode ", func(string) { f.change(Added) }},
		{"deleted file mode ", func(string) { f.change(Deleted) }},
		{"Binary files ", func(string) { f.Binary = true }},
		{"GIT binary patch", func(string) { f.Binary = true }},
	} {
		if v, ok := strings.CutPrefix(line, h.prefix); ok {
			h.set(v)
			return
		}
	}
}

func (f *PatchFile) change(c string) {
	if f.Change == "" {
		f.Change = c
	}
}

// side reads the name of one side; git ends a name with blanks in it by a tab.
func (f *PatchFile) side(v, prefix string) {
	v = strings.TrimSuffix(v, "\t")
	if v == "/dev/null" {
		return
	}
	if name, ok := strings.CutPrefix(unquote(v), prefix); ok && (f.Path == "" || prefix == "b/") {
		f.Path = name
	}
}

// closing is the index after the closing quote of a C-quoted name, 0 where there is none.
func closing(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// unquote undoes git's C-style quoting; what is not quoted stays.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	const plain, meant = `abtnvfr"\`, "\a\b\t\n\v\f\r\"\\"
	var b strings.Builder
	for in := s[1 : len(s)-1]; len(in) > 0; {
		if in[0] != '\\' || len(in) == 1 {
			b.WriteByte(in[0])
			in = in[1:]
			continue
		}
		if i := strings.IndexByte(plain, in[1]); i >= 0 {
			b.WriteByte(meant[i])
			in = in[2:]
			continue
		}
		if n, err := strconv.ParseUint(in[1:min(4, len(in))], 8, 8); err == nil && len(in) >= 4 {
			b.WriteByte(byte(n))
			in = in[4:]
			continue
		}
		b.WriteByte(in[0])
		in = in[1:]
	}
	return b.String()
}
