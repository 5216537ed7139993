package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// pair is a name, what joins it to its value, and the value: key=value, "key": "value",
// --key value, "--key", "value". The value's quotes are in the join.
var pair = regexp.MustCompile(`(--?)?([A-Za-z_][A-Za-z0-9_.-]*)(\\?["']?\s*(?::=|=>|=|:)\s*\\?["'` + "`" + `]?|\\?["']\s*,\s*\\?["']|\s+["']?)`)

// secretWords make a name in running text the name of a secret; secretPairs do so together.
var (
	secretWords = map[string]bool{
		"password": true, "passwd": true, "pwd": true, "passphrase": true, "passcode": true, "secret": true,
		"token": true, "credential": true, "credentials": true, "apikey": true, "bearer": true, "jwt": true,
		"pat": true, "pgpassword": true, "authtoken": true, "accesstoken": true, "privatekey": true,
		"secretkey": true, "accesskey": true, "auth": true, "authorization": true, "apitoken": true, "secrets": true,
	}
	secretPairs = map[[2]string]bool{
		{"api", "key"}: true, {"access", "key"}: true, {"private", "key"}: true, {"signing", "key"}: true,
		{"encryption", "key"}: true, {"master", "key"}: true, {"account", "key"}: true, {"auth", "key"}: true,
		{"service", "key"}: true, {"session", "key"}: true, {"license", "key"}: true, {"deploy", "key"}: true,
		{"connection", "string"}: true, {"db", "pass"}: true, {"user", "pass"}: true, {"mysql", "pass"}: true,
		{"redis", "pass"}: true, {"smtp", "pass"}: true,
	}
	// harmless last words: what is measured or named, not the secret itself.
	harmless = map[string]bool{
		"count": true, "limit": true, "size": true, "length": true, "ttl": true, "type": true, "name": true,
		"file": true, "path": true, "dir": true, "url": true, "uri": true, "field": true, "index": true,
		"expiry": true, "expires": true, "lifetime": true, "policy": true, "scheme": true, "id": true, "kind": true,
	}
	// plainValues are never the secret: types, states, absence.
	plainValues = map[string]bool{
		"true": true, "false": true, "null": true, "nil": true, "none": true, "undefined": true, "string": true,
		"str": true, "bytes": true, "byte": true, "number": true, "int": true, "bool": true, "boolean": true,
		"any": true, "object": true, "required": true, "optional": true, "invalid": true, "expired": true,
		"missing": true, "empty": true, "unset": true, "unknown": true, "valid": true, "wrong": true, "ok": true,
		"yes": true, "no": true, "error": true, "failed": true, "denied": true, "redacted": true, "option": true,
		"optional[str]": true, "disabled": true, "enabled": true,
	}
)

// secretName tells whether a name in running text names a secret.
func secretName(name string) bool {
	words := splitName(name)
	if len(words) == 0 || harmless[words[len(words)-1]] {
		return false
	}
	for i, w := range words {
		if secretWords[w] || i > 0 && secretPairs[[2]string{words[i-1], w}] {
			return true
		}
	}
	return false
}

// splitName gives the lower-case words of a snake, kebab, dotted or camel name.
func splitName(name string) []string {
	var words []string
	var cur []rune
	flush := func() {
		if len(cur) > 0 {
			words = append(words, strings.ToLower(string(cur)))
			cur = nil
		}
	}
	rs := []rune(name)
	for i, r := range rs {
		switch {
		case r == '_' || r == '-' || r == '.':
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1])):
			flush()
		}
		cur = append(cur, r)
	}
	flush()
	return words
}

func scrubPairs(s string) string {
	var out strings.Builder
	pos := 0
	for pos < len(s) {
		m := pair.FindStringSubmatchIndex(s[pos:])
		if m == nil {
			break
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += pos
			}
		}
		flag, name, sep := m[2] >= 0, s[m[4]:m[5]], s[m[6]:m[7]]
		if end := m[1]; takesValue(flag, name, sep) {
			if value := pairValue(s, end, sep); value > end && hidden(s, end, value, flag, sep) {
				out.WriteString(s[pos:end])
				out.WriteString(Mark)
				pos = value
				continue
			}
		}
		// The next name may begin right after this one.
		out.WriteString(s[pos:m[5]])
		pos = m[5]
	}
	out.WriteString(s[pos:])
	return out.String()
}

// takesValue tells whether what follows the name is its value: a plain blank joins only a
// flag to its value, a comma only a flag's argument to the next one.
func takesValue(flag bool, name, sep string) bool {
	if !secretName(name) {
		return false
	}
	if strings.ContainsAny(sep, ":=") {
		return true
	}
	return flag && !strings.HasPrefix(name, "show-") && !strings.HasPrefix(name, "no-")
}

// pairValue is the end of the value that begins at from.
func pairValue(s string, from int, sep string) int {
	quote := byte(0)
	if n := len(sep); n > 0 && strings.ContainsRune("\"'`", rune(sep[n-1])) {
		quote = sep[n-1]
	}
	for i := from; i < len(s); i++ {
		c := s[i]
		if quote != 0 {
			if c == quote || c == '\n' {
				return i
			}
			continue
		}
		if c <= ' ' || strings.IndexByte("\"'`,;&)}<>", c) >= 0 {
			return i
		}
	}
	return len(s)
}

// hidden tells whether a value of a secret's name is the secret itself rather than a
// reference to it, a type or a word of a sentence.
func hidden(s string, from, to int, flag bool, sep string) bool {
	v := s[from:to]
	quoted := strings.ContainsAny(sep[len(sep)-1:], "\"'`")
	trimmed := strings.TrimRight(v, ".!?")
	switch {
	case trimmed == "" || strings.HasPrefix(v, Mark) || strings.Trim(v, "*xX.•") == "":
		return false
	case strings.HasPrefix(v, "${") || strings.HasPrefix(v, "$(") || strings.HasPrefix(v, "{{") || v[0] == '%' && strings.HasSuffix(v, "%"):
		return false
	case v[0] == '$' && isIdent(v[1:]):
		return false
	case plainValues[strings.ToLower(trimmed)]:
		return false
	case quoted:
		return true
	case len(v) < 4 && strings.Trim(v, "0123456789") == "":
		return flag
	case flag:
		return v[0] != '-'
	}
	code := strings.ContainsAny(v, "([{")
	if !strings.ContainsAny(sep, " \t\n") && strings.TrimSpace(sep) == "=" {
		return !code || !isIdent(v[:strings.IndexAny(v, "([{")])
	}
	if code || strings.HasPrefix(strings.TrimSpace(sep), "=") && isDotted(v) || strings.Contains(sep, ":=") && isDotted(v) {
		return false
	}
	return !isWord(trimmed) || endsLine(s, to)
}

// endsLine tells whether nothing but closing marks follows on the line: a word then is a value,
// not the first of a sentence.
func endsLine(s string, at int) bool {
	rest := s[at:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	return strings.Trim(rest, " \t\r\"',;)}") == ""
}

func isWord(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && r != '\'' && r != '-' {
			return false
		}
	}
	return true
}

func isIdent(s string) bool {
	for i, r := range s {
		if !(r == '_' || unicode.IsLetter(r) || i > 0 && (unicode.IsDigit(r) || r == '.')) {
			return false
		}
	}
	return s != ""
}

// isDotted tells a reference in code (cfg.Token) from a value.
func isDotted(s string) bool { return isIdent(s) && !strings.ContainsAny(s, "0123456789") }
