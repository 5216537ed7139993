package redact

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth is how many encodings around a secret are undone.
const maxDepth = 3

var (
	percentRun = regexp.MustCompile(`[^\s"'<>&?=]*%[0-9A-Fa-f]{2}[^\s"'<>&?]*`)
	// Lines of one block of base64 belong together.
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}(?:\r?\n[ \t>]*[A-Za-z0-9+/_-]{4,})*={0,2}`)
	hexRun    = regexp.MustCompile(`\b[0-9A-Fa-f]{16,}\b`)
)

func scrubEncoded(s string, depth int) string {
	hides := func(plain string) bool { return scrubDeep(plain, depth-1) != plain }
	s = percentRun.ReplaceAllStringFunc(s, func(m string) string {
		if plain, err := url.PathUnescape(m); err == nil && plain != m && readable(plain) && hides(plain) {
			return Mark
		}
		return m
	})
	s = base64Run.ReplaceAllStringFunc(s, func(m string) string {
		if decodesTo(m, hides) {
			return Mark
		}
		lines := strings.Split(m, "\n")
		for i, l := range lines {
			if decodesTo(l, hides) {
				lines[i] = Mark
			}
		}
		return strings.Join(lines, "\n")
	})
	return hexRun.ReplaceAllStringFunc(s, func(m string) string {
		if plain, err := hex.DecodeString(m); err == nil && readable(string(plain)) && hides(string(plain)) {
			return Mark
		}
		return m
	})
}

var unwrap = strings.NewReplacer("\r", "", "\n", "", " ", "", "\t", "", ">", "", "=", "", "-", "+", "_", "/")

func decodesTo(run string, hides func(string) bool) bool {
	run = unwrap.Replace(run)
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	plain, err := base64.RawStdEncoding.DecodeString(run)
	return err == nil && readable(string(plain)) && hides(string(plain))
}

// readable tells text from noise that only happens to decode.
func readable(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
	}
	return true
}

// Bounds of what is taken for a random token without any other sign.
const (
	minRandom = 32 // characters
	// minMixing is the share of neighbours of different kinds (digit, upper, lower). Names
	// stay near 0.2, random base64 and base36 are above 0.4.
	minMixing  = 0.33
	minEntropy = 3.5 // bits a character
)

var (
	randomRun = regexp.MustCompile(`(?:[A-Za-z0-9-]+:)?[A-Za-z0-9_-]{16,}(?:[+/][A-Za-z0-9_+/-]*)?={0,2}|[A-Za-z0-9_-]+[+/][A-Za-z0-9_+/-]{16,}={0,2}`)
	// openIDs are ids and digests that evidence is made of: our own ids, git and SHA ids,
	// UUIDs, module and integrity hashes.
	openIDs = regexp.MustCompile(`^(?:(?:wc_(?:sess|call|inv|exec|msg|peer|shell|perm)|evt)_[0-9a-f]{32}` +
		`|(?:sha1:|sha256:)?(?:[0-9a-f]{40}|[0-9a-f]{64})|sha512[:-][0-9a-f]{128}|md5:[0-9a-f]{32}` +
		`|[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}|h1:[A-Za-z0-9+/]{43}=|sha(?:256|384|512)-[A-Za-z0-9+/]{43,86}={0,2})$`)
)

func scrubRandom(s string) string {
	return randomRun.ReplaceAllStringFunc(s, func(m string) string {
		if len(m) < minRandom || openIDs.MatchString(m) || !random(m) {
			return m
		}
		return Mark
	})
}

// random tells a token of a machine from a name, a path or a number.
func random(s string) bool {
	if strings.ContainsAny(s, "/+") && !pathless(s) {
		return false
	}
	var count [128]int
	digits, letters, upper, mixed := 0, 0, 0, 0
	last := byte(0)
	for i := range len(s) {
		c := s[i]
		k := kind(c)
		count[c&127]++
		switch k {
		case 'd':
			digits++
		case 'u':
			upper++
			letters++
		case 'l':
			letters++
		}
		if i > 0 && k != last && k != 'p' && last != 'p' {
			mixed++
		}
		last = k
	}
	if digits < 3 || letters < 3 {
		return false
	}
	entropy := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			entropy -= p * math.Log2(p)
		}
	}
	mixing := float64(mixed) / float64(len(s)-1)
	return mixing >= minMixing && (entropy >= minEntropy || upper > 0 && entropy >= 3)
}

// pathless tells base64 with slashes from a path: some segment of it is itself random.
func pathless(s string) bool {
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '+' || r == '=' }) {
		if len(part) >= 12 && random(part) {
			return true
		}
	}
	return false
}

func kind(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return 'd'
	case c >= 'A' && c <= 'Z':
		return 'u'
	case c >= 'a' && c <= 'z':
		return 'l'
	}
	return 'p'
}
