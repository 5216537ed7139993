package redact

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPathBytes of a project-relative path in evidence (EVT-25).
const MaxPathBytes = 512

var (
	uri   = regexp.MustCompile(`^(?i:[a-z][a-z0-9+.-]*://|file:|data:|javascript:)`)
	drive = regexp.MustCompile(`^[A-Za-z]:(?:[\\/]|$)`)
)

// Path is a project-relative path fit for evidence: clean, at most MaxPathBytes, each
// component that looks like a secret replaced. It is false for what is not such a path:
// absolute, leading out of the Project, a URI, with control characters, not UTF-8, too long.
func Path(p string) (string, bool) {
	slot, ok := cleanPaths.has(p)
	if ok {
		return p, true
	}
	clean, ok := cleanPath(p)
	if ok && clean == p {
		keep(slot, p)
	}
	return clean, ok
}

var cleanPaths memo

func cleanPath(p string) (string, bool) {
	if p == "" || len(p) > MaxPathBytes || !utf8.ValidString(p) || strings.IndexFunc(p, unicode.IsControl) >= 0 {
		return "", false
	}
	if p[0] == '/' || p[0] == '\\' || p == "~" || strings.HasPrefix(p, "~/") || strings.IndexByte(p, ':') >= 0 && (drive.MatchString(p) || uri.MatchString(p)) {
		return "", false
	}
	for _, part := range strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return "", false
		}
	}
	parts := strings.Split(path.Clean(p), "/")
	for i, part := range parts {
		if Secret(part) && !hashName.MatchString(part) {
			parts[i] = Mark
		}
	}
	out := strings.Join(parts, "/")
	return out, len(out) <= MaxPathBytes
}

// hashName is a file named by a digest of its content, which is no secret.
var hashName = regexp.MustCompile(`^(?:[A-Za-z]{0,24}[-._]?)[0-9a-f]{7,128}(?:\.[A-Za-z0-9]{1,12}){0,3}$`)
