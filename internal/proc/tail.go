package proc

import (
	"crypto/sha256"
	"hash"
	"sync"
	"unicode/utf8"
)

// Tail keeps the end of a stream and counts all of it. Offsets are absolute byte positions.
// It is safe for one writer and many readers.
type Tail struct {
	mu    sync.Mutex
	keep  int
	buf   []byte // the last bytes; at most 2×keep, trimmed to keep now and then
	total int64
	sum   hash.Hash // of all that was written; nil: nobody asked
}

// NewTail keeps the last keep bytes.
func NewTail(keep int) *Tail { return &Tail{keep: keep} }

// Write never fails and never blocks on readers longer than a copy.
func (t *Tail) Write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(len(p))
	if t.sum != nil {
		t.sum.Write(p)
	}
	if len(p) >= t.keep {
		t.buf = append(t.buf[:0], p[len(p)-t.keep:]...)
		return
	}
	if len(t.buf)+len(p) > 2*t.keep {
		n := copy(t.buf, t.buf[len(t.buf)-(t.keep-len(p)):])
		t.buf = t.buf[:n]
	}
	t.buf = append(t.buf, p...)
}

// Total is the number of bytes ever written.
func (t *Tail) Total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Sum is the SHA-256 over all that was written since it was first asked for: ask before the
// stream begins.
func (t *Tail) Sum() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sum == nil {
		t.sum = sha256.New()
	}
	return t.sum.Sum(nil)
}

// Trim gives back memory once the stream has ended.
func (t *Tail) Trim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if over := len(t.buf) - t.keep; over > 0 {
		t.buf = append([]byte(nil), t.buf[over:]...)
	} else if cap(t.buf) > 2*len(t.buf) {
		t.buf = append([]byte(nil), t.buf...)
	}
}

// Text is the last chars characters as valid UTF-8 and the number of bytes before them. A
// character cut by the bound is dropped whole; an invalid byte becomes U+FFFD.
func (t *Tail) Text(chars int) (text string, dropped int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	raw := t.kept()
	raw = raw[lastChars(raw, chars):]
	return valid(raw), t.total - int64(len(raw))
}

// Last is the last chars characters and the offset after them, from which From goes on. While
// the stream is open a character of which only the beginning has arrived is held back.
func (t *Tail) Last(chars int, open bool) (text string, next int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	raw := t.kept()
	end := len(raw)
	for n := 1; open && n < utf8.UTFMax && n <= len(raw); n++ {
		if at := len(raw) - n; utf8.RuneStart(raw[at]) {
			if !utf8.FullRune(raw[at:]) {
				end = at
			}
			break
		}
	}
	raw = raw[:end]
	next = t.total - int64(len(t.kept())-end)
	return valid(raw[lastChars(raw, chars):]), next
}

// kept is what may be shown of the stream: it begins with a whole character.
func (t *Tail) kept() []byte {
	raw := t.buf[max(0, len(t.buf)-t.keep):]
	if int64(len(raw)) < t.total {
		raw = raw[partial(raw):]
	}
	return raw
}

// From is what was written since the absolute offset, at most chars characters, and the
// offset after it. ok is false where that part is no longer kept or never was. While the
// stream is open a character of which only the beginning has arrived is held back.
func (t *Tail) From(offset int64, chars int, open bool) (delta string, next int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.total - int64(len(t.buf))
	if offset < first || offset > t.total {
		return "", t.total, false
	}
	raw := t.buf[offset-first:]
	n := 0
	for count := 0; n < len(raw) && count < chars; count++ {
		if open && !utf8.FullRune(raw[n:]) {
			break
		}
		_, size := utf8.DecodeRune(raw[n:])
		n += size
	}
	return valid(raw[:n]), offset + int64(n), true
}

// partial is the number of continuation bytes at the start of a cut stream.
func partial(raw []byte) int {
	n := 0
	for n < len(raw) && n < utf8.UTFMax-1 && !utf8.RuneStart(raw[n]) {
		n++
	}
	return n
}

// lastChars is the index at which the last n characters begin.
func lastChars(raw []byte, n int) int {
	at := len(raw)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRune(raw[:at])
		at -= size
	}
	return at
}

func valid(raw []byte) string {
	if utf8.Valid(raw) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw)+16)
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		out = utf8.AppendRune(out, r)
		raw = raw[size:]
	}
	return string(out)
}
