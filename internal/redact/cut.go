package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxGrapheme is how many characters a cut gives up so that one a person sees stays whole. A
// longer pile of marks is no character of any script and is cut where the bound says.
const maxGrapheme = 32

// Cut gives the first maxChars Unicode characters of s, up to maxGrapheme fewer where the
// bound would split what a person sees as one: a letter and its marks, an emoji sequence, a
// flag. The result is valid UTF-8 always; cut tells whether something is missing.
func Cut(s string, maxChars int) (kept string, cut bool) {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= maxChars {
		return s, false
	}
	at := 0
	for n := 0; n < maxChars && at < len(s); n++ {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	if at == len(s) {
		return s, false
	}
	return s[:border(s, at)], true
}

// border is the last border between graphemes of s at or before the byte at, or at where
// there is none near.
func border(s string, at int) int {
	end := at
	for range maxGrapheme {
		if end == 0 {
			break
		}
		next, _ := utf8.DecodeRuneInString(s[end:])
		prev, size := utf8.DecodeLastRuneInString(s[:end])
		if !joined(prev, next, s[:end]) {
			return end
		}
		end -= size
	}
	return at
}

const joiner = '\u200d' // zero width joiner

// joined reports whether next belongs to the grapheme that before ends with (prev is its last
// character). It knows the rules that matter for titles, not all of UAX 29.
func joined(prev, next rune, before string) bool {
	switch {
	case next < 0x300:
		return prev == '\r' && next == '\n'
	case prev == joiner, next == joiner, unicode.Is(unicode.M, next):
		return true
	case next >= 0x1f3fb && next <= 0x1f3ff, next >= 0xe0020 && next <= 0xe007f: // skin tones, tags
		return true
	case next >= 0x1160 && next <= 0x11ff: // a Hangul syllable in parts
		return prev >= 0x1100 && prev <= 0x11ff || prev >= 0xac00 && prev <= 0xd7a3
	case flagHalf(next):
		return halves(before)%2 == 1
	}
	return false
}

func flagHalf(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// halves counts the halves of flags that s ends with, as far as a border looks back.
func halves(s string) int {
	n := 0
	for n < maxGrapheme {
		r, size := utf8.DecodeLastRuneInString(s)
		if !flagHalf(r) {
			break
		}
		s = s[:len(s)-size]
		n++
	}
	return n
}
