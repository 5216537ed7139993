package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// read answers read_files: one bad item does not spoil the others.
func (s *service) read(ctx context.Context, p *runner.Project, in wire.ReadFilesIn) (wire.ReadFilesOut, error) {
	if len(in.Items) == 0 || len(in.Items) > wire.MaxReadItems {
		return wire.ReadFilesOut{}, fault.New(fault.InvalidArguments, "items must have 1 to %d entries", wire.MaxReadItems).WithField("items")
	}
	t := newTree(p.Root)
	defer t.close()
	out := wire.ReadFilesOut{Items: make([]wire.ReadFile, len(in.Items))}
	budget := wire.MaxResultChars
	for i, item := range in.Items {
		f := wire.ReadFile{Path: item.Path, StartLine: max(1, item.StartLine)}
		f.EndLine = f.StartLine - 1
		used, err := 0, budgetSpent()
		if budget > 0 {
			used, err = readItem(ctx, t, item, in.LineNumbers, budget, &f)
		}
		if ctx.Err() != nil {
			return out, timedOut(ctx)
		}
		f.Index = i
		if err != nil {
			e := fault.As(err)
			f = wire.ReadFile{Index: i, Path: item.Path, StartLine: f.StartLine, EndLine: f.StartLine - 1,
				ErrorKind: string(e.Kind), Reason: e.Reason, Error: e.Message}
			out.Truncated = out.Truncated || e.Kind == fault.OutputBudgetExceeded
		} else {
			f.Success = true
			out.Returned++
			out.Truncated = out.Truncated || f.Truncated
		}
		budget -= used
		out.Items[i] = f
	}
	return out, nil
}

func budgetSpent() error {
	return fault.New(fault.OutputBudgetExceeded, "the items before this one filled the answer").WithNext("read it in a call of its own")
}

func timedOut(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.Wrap(ctx.Err(), fault.Cancelled, "the call was cancelled")
	}
	return fault.Wrap(ctx.Err(), fault.Timeout, "the files could not be read in time").WithNext("ask for less at once")
}

func readItem(ctx context.Context, t *tree, item wire.ReadItem, numbers bool, budget int, f *wire.ReadFile) (int, error) {
	parts, err := relpath.SplitFile(item.Path)
	if err != nil {
		return 0, err
	}
	at, err := t.find(parts, finding{follow: true})
	if err != nil {
		return 0, err
	}
	file, info, err := at.latest()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if info.Size() > maxReadBytes {
		return 0, badPath(reasonTooLarge, nil)
	}
	limit := item.Limit
	if limit <= 0 || limit > wire.MaxReadLines {
		limit = wire.MaxReadLines
	}
	c := &collector{first: f.StartLine, last: f.StartLine + limit - 1, budget: budget, numbers: numbers}
	facts, err := scan(ctx, file, c)
	if err != nil {
		return 0, err
	}
	if c.cut && budget < wire.MaxResultChars {
		return 0, budgetSpent() // alone in an answer more of the line fits
	}
	f.Path, f.LineTruncated = at.path, c.cut
	f.SHA256, f.Bytes, f.Binary = facts.sum(), facts.bytes, facts.nul
	if facts.nul {
		return 0, nil
	}
	f.EOL, f.TotalLines = facts.eol(), facts.lines
	f.Text, f.EndLine, f.InvalidUTF8 = c.text.String(), c.end(), c.invalid
	if f.EndLine < f.TotalLines && f.StartLine <= f.TotalLines {
		next := f.EndLine + 1
		f.NextStartLine = &next
	}
	f.Truncated = f.NextStartLine != nil || c.cut
	return c.used, nil
}

// facts are about a whole file.
type facts struct {
	hash     hash.Hash
	bytes    int64
	lines    int
	lf, crlf int
	nul      bool
}

func (f *facts) sum() string { return hex.EncodeToString(f.hash.Sum(nil)) }

func (f *facts) eol() string { return endings(f.lf, f.crlf) }

// endings names the line ends of a text with so many of each; lf where there is none.
func endings(lf, crlf int) string {
	switch {
	case crlf == 0:
		return wire.EOLLF
	case lf == 0:
		return wire.EOLCRLF
	}
	return wire.EOLMixed
}

// collector keeps the lines of a range within a budget of characters.
type collector struct {
	first, last int
	budget      int
	numbers     bool

	text    strings.Builder
	used    int
	kept    int
	full    bool // the budget is used up: no further line
	cut     bool // a line was cut
	invalid bool
	line    []byte
	over    bool // the current line has more bytes than are kept
}

func (c *collector) end() int { return c.first + c.kept - 1 }

func (c *collector) wants(line int) bool { return line >= c.first && line <= c.last && !c.full }

func (c *collector) piece(p []byte) {
	if room := 4*c.budget + 2 - len(c.line); len(p) > room {
		p, c.over = p[:max(room, 0)], true
	}
	c.line = append(c.line, p...)
}

// finish ends the current line, whose end of line is still in it unless it was too long.
func (c *collector) finish(number int) {
	line := bytes.TrimSuffix(bytes.TrimSuffix(c.line, []byte("\n")), []byte("\r"))
	if !bytes.HasSuffix(c.line, []byte("\n")) {
		line = c.line
	}
	text := string(line)
	if !utf8.ValidString(text) {
		c.invalid = c.invalid || !c.over
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if c.numbers {
		text = strconv.Itoa(number) + "\t" + text
	}
	cost := utf8.RuneCountInString(text) + 1
	switch {
	case c.used+cost <= c.budget && !c.over:
	case c.kept > 0:
		c.full = true
	default:
		// One line larger than the whole answer: what fits is better than nothing.
		text, c.cut, c.full = firstChars(text, c.budget), true, true
		cost = c.budget
	}
	if !c.full || c.cut {
		if c.kept > 0 {
			c.text.WriteByte('\n')
		}
		c.text.WriteString(text)
		c.used += cost
		c.kept++
	}
	c.line, c.over = c.line[:0], false
}

// firstChars is the first n characters of s.
func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// scan reads a whole file once, for its hash, its lines and the collector's range.
func scan(ctx context.Context, r io.Reader, c *collector) (*facts, error) {
	f := &facts{hash: sha256.New()}
	in := bufio.NewReaderSize(io.LimitReader(r, maxReadBytes+1), 64<<10)
	var before byte
	open := false // a line has begun
	for {
		piece, err := in.ReadSlice('\n')
		if ctx.Err() != nil {
			return nil, timedOut(ctx)
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, badPath(reasonUnreadable, err)
		}
		if n := len(piece); n > 0 {
			f.hash.Write(piece)
			f.bytes += int64(n)
			f.nul = f.nul || bytes.IndexByte(piece, 0) >= 0
			if !open {
				open = true
				f.lines++
			}
			want := c.wants(f.lines)
			if want {
				c.piece(piece)
			}
			if piece[n-1] == '\n' {
				if n > 1 {
					before = piece[n-2]
				}
				if before == '\r' {
					f.crlf++
				} else {
					f.lf++
				}
				open = false
			}
			before = piece[n-1]
			if want && !open {
				c.finish(f.lines)
			}
		}
		if f.bytes > maxReadBytes {
			return nil, badPath(reasonTooLarge, nil)
		}
		if errors.Is(err, io.EOF) {
			if open && c.wants(f.lines) {
				c.finish(f.lines)
			}
			return f, nil
		}
	}
}
