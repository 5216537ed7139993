package ssh

import (
	"strings"

	"webcodex/internal/proc"
)

// starter is what the remote sh runs: it enters the directory, says how that went, and only then
// becomes the command. Its words begin with a random token on a line of their own, before the
// first byte of the command, so nothing that the command prints can be taken for them, and what
// the account's login prints before them is told apart. Arguments: token, directory, shell,
// command.
var starter = func() string {
	var b strings.Builder
	b.WriteString("export")
	for _, kv := range proc.Environment(nil, nil) {
		b.WriteString(" " + kv) // nothing may ask, page or open an editor there either
	}
	b.WriteString(`; t=$1 d=$2 s=$3 c=$4; no() { printf "%s %s %s\n" "$t" "$1" "$2"; exit 1; }; `)
	b.WriteString(enter)
	b.WriteString(`printf "%s ` + wordRun + `\n" "$t"; exec "$s" -c -- "$c"`)
	return b.String()
}()

// Words of the starter after its token.
const (
	wordRun   = "run"
	wordCwd   = "cwd"
	wordShell = "shell"
)

// remoteCommand is the line that the account's login shell is given.
func remoteCommand(token, cwd, shell, command string) string {
	var b strings.Builder
	b.WriteString("exec sh -c")
	for _, arg := range []string{starter, "webcodex", token, cwd, shell, command} {
		b.WriteByte(' ')
		quote(&b, arg)
	}
	return b.String()
}

// quote makes one word of any text without NUL, for sh and its kin, fish too. What some shell
// reads within quotes stands outside them behind a backslash.
func quote(b *strings.Builder, text string) {
	b.WriteByte('\'')
	for i := range len(text) {
		switch c := text[i]; c {
		case '\'', '\\', '!':
			b.WriteString(`'\`)
			b.WriteByte(c)
			b.WriteByte('\'')
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
}
