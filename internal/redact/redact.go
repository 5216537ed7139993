// Package redact takes secrets out of the few free texts that may be stored (title,
// instruction, messages: HND-13, EVT-17, EVT-22, LST-06, STA-11) and makes text safe to print
// on a terminal. It is the second net: what must not be stored at all is kept out by the
// allow-listed evidence of each tool, not by patterns.
package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark stands where a secret stood.
const Mark = "[redacted]"

// maxPasses ends the search for a fixed point: cutting a text can end a sentence early and so
// turn prose into what looks like a credential.
const maxPasses = 4

// slackChars is what is looked at beyond the bound, so that a secret across it is seen whole.
const slackChars = 16 << 10

// Text is s without secrets and with at most maxChars Unicode characters. Invalid bytes and
// lone surrogates become U+FFFD. The result is valid UTF-8, and Text of it is the same text.
// A result that differs from s tells that something was taken out or cut (HND-15).
func Text(s string, maxChars int) string {
	if maxChars <= 0 {
		return ""
	}
	if len(s) > maxChars {
		return text(s, maxChars)
	}
	slot, ok := cleanTexts.has(s)
	if ok {
		return s
	}
	clean := text(s, maxChars)
	if clean == s {
		keep(slot, s)
	}
	return clean
}

// cleanTexts are left as they are under every bound that they are not longer than.
var cleanTexts memo

func text(s string, maxChars int) string {
	s = precut(strings.ToValidUTF8(s, string(utf8.RuneError)), maxChars)
	for range maxPasses {
		next := cut(scrub(s), maxChars)
		if next == s {
			return s
		}
		s = next
	}
	return s
}

// Secret tells whether s holds something that looks like a credential.
func Secret(s string) bool {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	return scrub(s) != s
}

// scrub replaces every secret. A secret broken up by characters that nobody sees is found
// too; the text then loses those characters.
func scrub(s string) string {
	if plain(s) {
		return s
	}
	return scrubAll(s)
}

func scrubAll(s string) string {
	if bare := strings.Map(dropInvisible, s); bare != s {
		if clean := scrubDeep(bare, maxDepth); clean != bare {
			return clean
		}
		return s
	}
	return scrubDeep(s, maxDepth)
}

// scrubDeep looks for secrets as they are, then inside encodings down to depth.
func scrubDeep(s string, depth int) string {
	s = scrubBlocks(s)
	s = scrubPatterns(s)
	s = scrubPairs(s)
	s = scrubFlags(s)
	if depth > 0 {
		s = scrubEncoded(s, depth)
	}
	return scrubRandom(s)
}

func dropInvisible(r rune) rune {
	if r > unicode.MaxASCII && unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

// precut bounds the work on an oversized text. It never cuts inside a word, since half a
// secret may not look like one.
func precut(s string, maxChars int) string {
	if maxChars > len(s) || len(s)-maxChars <= slackChars {
		return s
	}
	head := cut(s, maxChars+slackChars)
	if len(head) == len(s) {
		return s
	}
	if i := strings.LastIndexFunc(head, unicode.IsSpace); i > 0 {
		return head[:i]
	}
	return Mark
}

func cut(s string, maxChars int) string {
	kept, _ := Cut(s, maxChars)
	return kept
}
