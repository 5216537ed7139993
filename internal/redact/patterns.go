package redact

import (
	"regexp"
	"strings"
)

// rule replaces each match by repl, in regexp's template form.
type rule struct {
	re   *regexp.Regexp
	repl string
}

// prefixed are credentials that name themselves. Bounds below the real lengths: a test key or
// a shortened one is treated as a key.
var prefixed = regexp.MustCompile(`(?:\b|_)(?:` + strings.Join([]string{
	`gh[oprsu]_[A-Za-z0-9]{8,}`,
	`github_pat_[A-Za-z0-9_]{8,}`,
	`gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_.-]{8,}`,
	`sk-(?:proj|ant|svcacct|admin|or|live|test)-[A-Za-z0-9_-]{8,}`,
	`[sprw]h?k_(?:live|test)_[A-Za-z0-9]{8,}`,
	`whsec_[A-Za-z0-9+/=]{8,}`,
	`xox[a-z](?:\.[a-z]+)?-[A-Za-z0-9-]{8,}`,
	`xapp-[A-Za-z0-9-]{8,}`,
	`(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{12,}`,
	`AIza[A-Za-z0-9_-]{20,}`,
	`ya29\.[A-Za-z0-9_-]{8,}`,
	`GOCSPX-[A-Za-z0-9_-]{8,}`,
	`npm_[A-Za-z0-9]{16,}`,
	`pypi-AgE[A-Za-z0-9_-]{16,}`,
	`hf_[A-Za-z0-9]{16,}`,
	`do[opr]_v1_[a-f0-9]{16,}`,
	`SG\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`,
	`shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}`,
	`lin_(?:api|oauth)_[A-Za-z0-9]{8,}`,
	`dapi[a-f0-9]{32}`,
	`AGE-SECRET-KEY-1[A-Z0-9]{16,}`,
	`hv[sbr]\.[A-Za-z0-9_-]{16,}`,
	`wcx_[A-Za-z0-9_-]{8,}`,
	`wc_(?:pat|oat|ort|agent|acct|pair|csec)_[A-Za-z0-9_-]{4,}`,
	`S[NACOUX][A-Z2-7]{56}`,
	`eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)*`,
}, "|") + `)`)

var rules = []rule{
	// Schemes with one value, and those with a list of parameters up to the end of the line.
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization)(\\?["']?\s*[:=]\s*\\?["']?)(?:bearer|basic|token|negotiate|apikey|api-key|key|ntlm)\s+[^\s"'\\,;]+`), "${1}${2}" + Mark},
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization)(\\?["']?\s*[:=]\s*\\?["']?)(?:digest|hawk|oauth|signature|aws4-hmac-sha256)\s+[^\r\n]+`), "${1}${2}" + Mark},
	{regexp.MustCompile(`(?i)\b((?:set-)?cookie)(\\?["']?\s*:\s*\\?["']?)[^\s"'=]+=[^\r\n"']+`), "${1}${2}" + Mark},
	{regexp.MustCompile(`(?i)\b(basic\s+)[A-Za-z0-9+/]{8,}={1,2}`), "${1}" + Mark},
	// Credentials in front of a host, with a scheme and without one.
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/@:"'<>\[]*:[^\s/"'<>]+@`), "${1}" + Mark + "@"},
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/@:"'<>\[]{20,}@`), "${1}" + Mark + "@"},
	{regexp.MustCompile(`((?:^|\s)(?:-u|--user|--proxy-user)(?:=|\s+|["']\s*,\s*["'])["']?)[^\s:"'\[]+:[^\s"']+`), "${1}" + Mark},
}

var (
	bearer   = regexp.MustCompile(`(?i)\b(bearer(?:\s+|%20|\+|["']\s*,\s*["']))([A-Za-z0-9._~+/=-]+)`)
	userinfo = regexp.MustCompile(`([A-Za-z0-9._%+-]+):([^\s:/@"'<>\[\]]+)@([A-Za-z0-9\[][A-Za-z0-9.-]*)`)
	plainSK  = regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{8,}`)
)

// proseAfterBearer are words that follow "bearer" in a sentence about the scheme. Anything
// else longer than shortWord is taken for a token.
var proseAfterBearer = map[string]bool{
	"access": true, "authentication": true, "authenticated": true, "authorization": true, "authorisation": true,
	"challenge": true, "credential": true, "credentials": true, "format": true, "handler": true, "handling": true,
	"header": true, "headers": true, "middleware": true, "parsing": true, "prefix": true, "scheme": true,
	"schemes": true, "security": true, "string": true, "support": true, "tokens": true, "validation": true,
	"verification": true, "verifier": true,
}

const shortWord = 5

// notUsers are words before a colon that make x:y@z something else than credentials.
var notUsers = map[string]bool{
	"mailto": true, "npm": true, "pkg": true, "file": true, "workspace": true, "acct": true, "sip": true,
	"sips": true, "xmpp": true, "link": true, "patch": true, "jsr": true, "image": true, "docker": true,
}

func scrubPatterns(s string) string {
	s = prefixed.ReplaceAllStringFunc(s, func(m string) string {
		if m[0] == '_' {
			return "_" + Mark
		}
		return Mark
	})
	for _, r := range rules {
		s = r.re.ReplaceAllString(s, r.repl)
	}
	s = bearer.ReplaceAllStringFunc(s, func(m string) string {
		g := bearer.FindStringSubmatch(m)
		if isProse(g[2]) {
			return m
		}
		return g[1] + Mark
	})
	s = plainSK.ReplaceAllStringFunc(s, func(m string) string {
		if strings.ContainsAny(m, "0123456789") || strings.ToLower(m) != m || !strings.Contains(m[3:], "-") && len(m) > 16 {
			return Mark
		}
		return m
	})
	return userinfo.ReplaceAllStringFunc(s, func(m string) string {
		g := userinfo.FindStringSubmatch(m)
		if notUsers[strings.ToLower(g[1])] {
			return m
		}
		return Mark + "@" + g[3]
	})
}

// isProse tells a word of a sentence from a token.
func isProse(word string) bool {
	word = strings.ToLower(strings.TrimRight(word, ".,-"))
	if i := strings.IndexAny(word, "-/_."); i > 0 {
		word = word[:i]
	}
	for _, r := range word {
		if r < 'a' || r > 'z' {
			return false
		}
	}
	return len(word) <= shortWord || proseAfterBearer[word]
}

const keyKinds = `(?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?`

var (
	block = regexp.MustCompile(`-----BEGIN ` + keyKinds + `-----[\s\S]*?-----END ` + keyKinds + `-----`)
	// Without its end a block takes the base64 lines that follow, however they are wrapped;
	// without its begin, those before.
	blockHead = regexp.MustCompile(`-----BEGIN ` + keyKinds + `-----(?:(?:\\+[nrt]|[\s>"'+,|#*])*[A-Za-z0-9+/=:]{16,})*(?:(?:\\+[nrt]|[\s>"'+,|#*])*[A-Za-z0-9+/]+=+)?`)
	blockTail = regexp.MustCompile(`(?:[A-Za-z0-9+/=]{4,}(?:\\+[nrt]|[\s>"'+,|#*])+)+-----END ` + keyKinds + `-----`)
)

func scrubBlocks(s string) string {
	if !strings.Contains(s, "PRIVATE KEY") {
		return s
	}
	s = block.ReplaceAllLiteralString(s, Mark)
	s = blockHead.ReplaceAllLiteralString(s, Mark)
	return blockTail.ReplaceAllLiteralString(s, Mark)
}
