package patch

import (
	"strconv"
	"strings"
)

// gitHead is what git's header of a file says.
type gitHead struct {
	old, now         string // names of the diff line, where they can be told apart
	from, to         string // of a rename or copy
	renamed, copied  bool
	oldMode, newMode string
	created, deleted string // modes
}

// gitFile reads a file that begins with diff --git.
func (p *parser) gitFile() error {
	f := File{At: number(p.at)}
	var h gitHead
	h.old, h.now = pairOf(strings.TrimPrefix(p.head(p.at), "diff --git "))
	for p.at++; p.at < len(p.lines); p.at++ {
		more, err := h.take(p.head(p.at), number(p.at))
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	old, now := h.old, h.now
	if strings.HasPrefix(p.head(p.at), "--- ") {
		a, b, err := p.sides()
		if err != nil {
			return err
		}
		a, b = stripped(a, b)
		if err := h.suits(a, b, f.At); err != nil {
			return err
		}
		old, now = a, b
	} else if strings.HasPrefix(p.head(p.at), "@@") {
		return bad(number(p.at), Malformed, "a hunk begins before --- and +++ name its file")
	}
	if err := h.fill(&f, old, now); err != nil {
		return err
	}
	return p.body(f)
}

// take reads one line of the header; more is false where the header has ended.
func (h *gitHead) take(line string, at int) (more bool, err error) {
	for _, ignored := range []string{"similarity index ", "dissimilarity index ", "index "} {
		if strings.HasPrefix(line, ignored) {
			return true, nil
		}
	}
	if strings.HasPrefix(line, "Binary files ") || strings.HasPrefix(line, "GIT binary patch") {
		return false, bad(at, Binary, "binary content cannot be patched here; write the file another way")
	}
	for _, m := range []struct {
		prefix string
		mode   *string
	}{{"old mode ", &h.oldMode}, {"new mode ", &h.newMode}, {"new file mode ", &h.created}, {"deleted file mode ", &h.deleted}} {
		if mode, ok := strings.CutPrefix(line, m.prefix); ok {
			if mode != ModePlain && mode != ModeExecutable {
				return false, bad(at, Mode, "a patch here is about plain files: no symbolic link, no submodule")
			}
			*m.mode = mode
			return true, nil
		}
	}
	for _, n := range []struct {
		prefix string
		name   *string
		is     *bool
	}{{"rename from ", &h.from, &h.renamed}, {"rename to ", &h.to, &h.renamed}, {"copy from ", &h.from, &h.copied}, {"copy to ", &h.to, &h.copied}} {
		if value, ok := strings.CutPrefix(line, n.prefix); ok {
			name, ok := plainName(value)
			if !ok {
				return false, bad(at, Malformed, "the name of a file cannot be read")
			}
			*n.name, *n.is = name, true
			return true, nil
		}
	}
	return false, nil
}

// suits holds the names of the header against those of --- and +++.
func (h *gitHead) suits(old, now string, at int) error {
	differ := func(a, b string) bool { return a != "" && b != devNull && a != b }
	first, second := h.old, h.now
	if h.from != "" {
		first, second = h.from, h.to
	}
	if differ(first, old) || differ(second, now) {
		return bad(at, NameMismatch, "the header and the --- and +++ lines name different files")
	}
	return nil
}

// fill decides what the file's change is.
func (h *gitHead) fill(f *File, old, now string) error {
	confused := func() error { return bad(f.At, Malformed, "the header says more than one thing about the file") }
	one := func(name string) error {
		if name == "" || name == devNull {
			return bad(f.At, Malformed, "the header does not tell the name of the file")
		}
		f.Path = name
		return nil
	}
	moved := h.renamed || h.copied
	created, deleted := h.created != "" || old == devNull, h.deleted != "" || now == devNull
	if created && deleted || moved && (created || deleted) || h.renamed && h.copied || (h.oldMode != "") != (h.newMode != "") ||
		(created || deleted) && h.newMode != "" {
		return confused()
	}
	switch {
	case created:
		if h.created != "" && old != devNull && old != now {
			return bad(f.At, NameMismatch, "a new file has two names")
		}
		f.Kind, f.Mode = Create, h.created
		return one(now)
	case deleted:
		if now != devNull && old != now {
			return bad(f.At, NameMismatch, "a deleted file has two names")
		}
		f.Kind = Delete
		return one(old)
	case moved:
		if f.Kind = Rename; h.copied {
			f.Kind = Copy
		}
		f.Mode, f.ToPath = changedMode(h), h.to
		if h.to == "" || h.from == h.to {
			return confused()
		}
		return one(h.from)
	}
	if old != now {
		return bad(f.At, NameMismatch, "the two sides name different files, and the header tells of no rename")
	}
	f.Kind, f.Mode = Edit, changedMode(h)
	return one(now)
}

func changedMode(h *gitHead) string {
	if h.newMode == h.oldMode {
		return ""
	}
	return h.newMode
}

// pairOf takes the two names from "a/N b/N", where they can be told apart: quoted, or the same.
func pairOf(pair string) (old, now string) {
	if strings.HasPrefix(pair, `"`) {
		first, rest, ok := unquote(pair)
		second, ok2 := plainName(strings.TrimPrefix(rest, " "))
		if !ok || !ok2 || !strings.HasPrefix(rest, " ") {
			return "", ""
		}
		return stripped(first, second)
	}
	if i := strings.Index(pair, ` "`); i > 0 {
		if second, ok := plainName(pair[i+1:]); ok {
			return stripped(pair[:i], second)
		}
		return "", ""
	}
	half := len(pair) / 2
	if len(pair)%2 == 0 || pair[half] != ' ' {
		return "", ""
	}
	old, now = stripped(pair[:half], pair[half+1:])
	if old != now {
		return "", ""
	}
	return old, now
}

// plainName is a name that may be quoted and has nothing after it.
func plainName(value string) (string, bool) {
	if !strings.HasPrefix(value, `"`) {
		return value, value != ""
	}
	name, rest, ok := unquote(value)
	return name, ok && rest == "" && name != ""
}

// unquote undoes git's C-style quoting of the name that s begins with.
func unquote(s string) (name, rest string, ok bool) {
	const plain, meant = `abtnvfr"\`, "\a\b\t\n\v\f\r\"\\"
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] != '\\':
			b.WriteByte(s[i])
		case i+1 == len(s):
			return "", "", false
		case strings.IndexByte(plain, s[i+1]) >= 0:
			b.WriteByte(meant[strings.IndexByte(plain, s[i+1])])
			i++
		default:
			n, err := strconv.ParseUint(s[i+1:min(i+4, len(s))], 8, 8)
			if err != nil || i+4 > len(s) {
				return "", "", false
			}
			b.WriteByte(byte(n))
			i += 3
		}
	}
	return "", "", false
}
