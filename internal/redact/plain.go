package redact

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain tells, without a regular expression, that no rule finds anything in s: most texts hold
// nothing that a secret could be. False tells nothing. It knows of each rule what it cannot
// match without, so a new rule needs its line here; FuzzPlain holds it against them.
func plain(s string) bool {
	var f features
	return f.scan(s) && !f.suspect(s)
}

// features of a text that rules need.
type features struct {
	joins bool // something that ties a name to its value
	flag  bool // a dash that may begin a flag
	long  bool // a run that may be random
}

// wordRuns are the characters of names, encodings and tokens.
var wordRuns = func() (t [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+/=:") {
		t[c] = true
	}
	return t
}()

func wordRun(c byte) bool { return wordRuns[c] }

// scan reads s once; false: some rule may match.
func (f *features) scan(s string) bool {
	start := -1 // of the run
	for i := 0; i <= len(s); i++ {
		if i < len(s) && wordRun(s[i]) {
			if start < 0 {
				start = i
			}
			switch s[i] {
			case ':', '=':
				f.joins = true
			case '-':
				if endsAny(s[:i+1], dashMarks) {
					return false
				}
				if !letterBefore(s, i) {
					f.flag = true
					if i+1 < len(s) && strings.IndexByte("pPawuh-", s[i+1]) >= 0 {
						return false
					}
				}
			case '_':
				if endsAny(s[:i+1], lineMarks) {
					return false
				}
			case '.':
				if endsAny(s[:i+1], dotMarks) {
					return false
				}
			}
			continue
		}
		if start >= 0 {
			if !f.run(s[start:i], s[i:]) {
				return false
			}
			start = -1
		}
		if i == len(s) {
			break
		}
		switch c := s[i]; {
		case c == '@':
			return false
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			return false
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			// The last two are letters to a pattern that ignores case.
			if r == utf8.RuneError || unicode.Is(unicode.Cf, r) || r == 'ſ' || r == '\u212a' {
				return false
			}
			i += size - 1
		}
	}
	return true
}

// letterBefore tells a dash within a name from one that may begin a flag.
func letterBefore(s string, i int) bool {
	for i > 0 && (wordRun(s[i-1]) && strings.IndexByte("+/=:", s[i-1]) < 0) {
		i--
	}
	return s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] == '_'
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// run judges one run of wordRun characters; rest is what follows it.
func (f *features) run(s, rest string) bool {
	if len(s) < 12 {
		return true
	}
	if len(s) >= minRandom {
		f.long = true
	}
	from := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && strings.IndexByte(".:=", s[i]) < 0 {
			continue
		}
		part := s[from:i]
		from = i + 1
		if len(part) < 12 {
			continue
		}
		if i == len(s) && rest != "" && (rest[0] == '\n' || rest[0] == '\r') { // may go on in the next line
			return false
		}
		if encodes(part) {
			return false
		}
	}
	return true
}

// encodes tells whether a run is base64 or hex of something readable.
func encodes(run string) bool {
	if len(run) > 1024 {
		return true
	}
	digits := 0
	for i := 0; i <= len(run); i++ {
		if i < len(run) && isHex(run[i]) {
			digits++
			continue
		}
		if digits >= 16 && hexText(run[i-digits:i]) {
			return true
		}
		digits = 0
	}
	var in [1024]byte
	for i := range len(run) {
		switch c := run[i]; c {
		case '-':
			in[i] = '+'
		case '_':
			in[i] = '/'
		default:
			in[i] = c
		}
	}
	n := len(run)
	if n%4 == 1 {
		n--
	}
	var out [768]byte
	m, err := base64.RawStdEncoding.Decode(out[:], in[:n])
	return err == nil && readable(string(out[:m]))
}

func hexText(run string) bool {
	b, err := hex.DecodeString(run)
	return err == nil && readable(string(b))
}

// Marks of credentials that name themselves, up to their first _, - or dot that is needed.
var (
	lineMarks = []string{"gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "k_live_", "k_test_", "whsec_", "npm_", "hf_", "_v1_",
		"shpat_", "shpca_", "shppa_", "shpss_", "lin_api_", "lin_oauth_", "wcx_",
		"wc_pat_", "wc_oat_", "wc_ort_", "wc_agent_", "wc_acct_", "wc_pair_", "wc_csec_"}
	dashMarks = []string{"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "sk-", "xapp-", "GOCSPX-", "pypi-", "AGE-SECRET-"}
	dotMarks  = []string{"ya29.", "SG.", "hvs.", "hvb.", "hvr."}
	bareMarks = []string{"xox", "eyJ", "AKIA", "ASIA", "AGPA", "AIDA", "AROA", "ANPA", "ANVA", "ABIA", "ACCA", "AIza", "dapi", "PRIVATE KEY"}
	// valueWords make the name of a value a secret's, wherever they stand in it.
	valueWords = []string{"passw", "passphrase", "passcode", "pwd", "secret", "token", "credential", "authorization", "cookie", "jwt"}
)

// suspect reports whether a mark or a word is there that a rule begins with.
func (f *features) suspect(s string) bool {
	if containsAny(s, bareMarks) || f.long && scrubRandom(s) != s {
		return true
	}
	low := lowered(s)
	if strings.Contains(low, "bearer") || strings.Contains(low, "basic") || f.long && longUpper(s) {
		return true
	}
	if !f.joins && !f.flag {
		return false
	}
	return containsAny(low, valueWords) || word(s, low, "auth", false) || word(s, low, "pat", false) || word(s, low, "key", true) ||
		word(s, low, "pass", true) || strings.Contains(low, "connection") && strings.Contains(low, "string")
}

// lowered is s with small ASCII letters, place by place.
func lowered(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

func endsAny(s string, list []string) bool {
	for _, m := range list {
		if strings.HasSuffix(s, m) {
			return true
		}
	}
	return false
}

func containsAny(s string, list []string) bool {
	for _, m := range list {
		if strings.Contains(s, m) {
			return true
		}
	}
	return false
}

// longUpper finds a run as long as a seed of capitals and digits.
func longUpper(s string) bool {
	n := 0
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' || c >= '2' && c <= '7' {
			if n++; n >= 58 {
				return true
			}
			continue
		}
		n = 0
	}
	return false
}

// word finds w where it may be a word of a name: with something before it in the name
// (behind), or else not going on in small letters. low is s in small letters.
func word(s, low, w string, behind bool) bool {
	for i := 0; ; {
		j := strings.Index(low[i:], w)
		if j < 0 {
			return false
		}
		i += j
		end := i + len(w)
		switch {
		case behind && i > 0 && wordRun(s[i-1]) && strings.IndexByte("+/=:", s[i-1]) < 0,
			!behind && (end == len(s) || s[end] < 'a' || s[end] > 'z'):
			return true
		}
		i = end
	}
}
