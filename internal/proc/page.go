package proc

import (
	"bytes"
	"unicode/utf8"
)

// Page is a part of a stream. Offsets are absolute byte positions.
type Page struct {
	Text   string // valid UTF-8
	Offset int64  // of its first byte
	Next   int64  // after it
	Total  int64  // ever written
	Kept   int64  // offset of the oldest byte that is kept
}

// Held is how many bytes are kept in memory.
func (t *Tail) Held() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.buf))
}

// Page gives at most limit bytes from an absolute offset on, or from the oldest that is kept. A
// character is not cut by the limit, which is at least utf8.UTFMax; while the stream is open one
// of which only the beginning has arrived is held back.
func (t *Tail) Page(offset int64, limit int, open bool) Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.page(offset, limit, open)
}

// LastPage is the page of the last lines, as far as they have together at most limit bytes.
func (t *Tail) LastPage(lines, limit int, open bool) Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	raw := t.buf[max(0, len(t.buf)-limit):]
	if int64(len(raw)) < t.total {
		raw = raw[partial(raw):]
	}
	at := len(bytes.TrimSuffix(raw, []byte("\n")))
	for n := 0; n < lines && at > 0; n++ {
		at = max(0, bytes.LastIndexByte(raw[:at], '\n'))
	}
	if at > 0 {
		at++
	}
	return t.page(t.total-int64(len(raw)-at), limit, open)
}

func (t *Tail) page(offset int64, limit int, open bool) Page {
	p := Page{Total: t.total, Kept: t.total - int64(len(t.buf))}
	p.Offset = min(max(offset, p.Kept), t.total)
	raw := t.buf[p.Offset-p.Kept:]
	if p.Offset > offset && p.Kept > 0 {
		skip := partial(raw)
		raw, p.Offset = raw[skip:], p.Offset+int64(skip)
	}
	n := 0
	for n < len(raw) {
		if open && !utf8.FullRune(raw[n:]) {
			break
		}
		_, size := utf8.DecodeRune(raw[n:])
		if n+size > limit {
			break
		}
		n += size
	}
	p.Text, p.Next = valid(raw[:n]), p.Offset+int64(n)
	return p
}
