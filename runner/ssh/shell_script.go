package ssh

import (
	"fmt"
	"strings"

	"webcodex/internal/proc"
	"webcodex/runner/shell"
	"webcodex/runner/wire"
)

// maxSpill is how large a file of a command's output may grow on a resource, in bytes, before what
// it has is dropped; it is looked at once a second.
const maxSpill = 32 << 20

// keptFiles is of how many commands the files are kept, for what goes on writing to them.
const keptFiles = 64

// wordPlace is the starter's word where the resource has no room for a shell's files.
const wordPlace = "place"

// keeper is what the remote sh runs for a persistent shell. It enters the directory and says how
// that went, makes an own directory, and becomes the keeper of the shell, which reads its script
// from a named pipe there and answers on descriptor 9: the channel's standard output, which no
// command has. What a command prints goes to files of the directory and is sent after its end with
// its length, so nothing of it can be taken for an answer. When the channel ends, and when the
// shell does, the keeper ends everything of its process group and removes the directory.
// Arguments: token, directory, shell.
var keeper = func() string {
	var b strings.Builder
	b.WriteString("unset ENV BASH_ENV; export")
	for _, kv := range proc.Environment(nil, nil) {
		b.WriteString(" " + kv)
	}
	b.WriteString(`; t=$1 d=$2 s=$3; no() { printf "%s %s %s\n" "$t" "$1" "$2"; exit 1; }; ` + enter)
	b.WriteString(`b=$(command -v sh); w=$(umask 077; mktemp -d "${TMPDIR:-/tmp}/webcodex-shell-XXXXXX" 2>/dev/null) && mkfifo -m 600 "$w/s" 2>/dev/null || no ` + wordPlace + ` none; `)
	fmt.Fprintf(&b, `printf "%%s\n" '%s' >"$w/a"; `, strings.ReplaceAll(answerer, "'", `'\''`))
	// Only what is in a group of its own may be ended as one.
	b.WriteString(`g=$(ps -o pgid= -p $$ 2>/dev/null); all() { [ "$((g))" = "$$" ] && kill "-$1" 0; }; nap() { sleep "$1" 2>/dev/null || sleep 1; }; `)
	b.WriteString(`exec 3<&0 4>&1 </dev/null >/dev/null 2>&1; trap : INT HUP TERM; `)
	b.WriteString(`( trap "" INT HUP TERM; LC_ALL=C; exec 5>"$w/s"; while IFS= read -r l; do case $l in ` + feed + `*) printf "%s\n" "${l#` + feed + `}" >&5 ;; ` + interrupt + `) all INT ;; esac; done <&3; ` +
		`exec 3<&- 5>&-; nap 0.3; all HUP; nap 0.5; rm -rf "$w"; all KILL ) 4>&- & `)
	fmt.Fprintf(&b, `( trap "" INT HUP; while sleep 1; do for f in "$w"/[oe] "$w"/[oe].[0-9]*; do `+
		`n=$(wc -c <"$f" 2>/dev/null) && [ "$((n))" -gt %d ] && : >"$f" && echo "$((n))" >>"$w/n${f##*/}"; done; done ) 3<&- 4>&- & `, maxSpill)
	b.WriteString(`printf "%s ` + wordRun + ` %s %s\n" "$t" "$b" "$w" >&4; `)
	b.WriteString(`"$s" -c 'exec "$0" ${BASH_VERSION:+--norc --noprofile --noediting} -i <"$1"' "$s" "$w/s" 9>&4 3<&- 4>&-; e=$?; `)
	b.WriteString(`printf "%s ` + wordEnd + ` %s\n" "$t" "$e" >&4; sh "$w/a" "$t" "$e" "$w" 0 >&4; rm -rf "$w"; exec 4>&- 3<&-; all TERM; nap 0.2; all KILL; exit "$e"`)
	return b.String()
}()

// answerer sends what a command has left: its token and status, then for each stream how much was
// printed and how much comes, then that. The files go out of the next command's way; what still
// writes to them is not heard any more. Arguments: token, status, directory, number.
var answerer = fmt.Sprintf(`umask 077; LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/bin:/bin; t=$1 s=$2 w=$3 k=$4
for x in o e; do
[ -f "$w/$x" ] || : >"$w/$x"
n=$(wc -c <"$w/$x"); tail -c %d "$w/$x" >"$w/t$x"; m=$(wc -c <"$w/t$x")
[ "$((n))" -ge "$((m))" ] || n=$m
[ -f "$w/n$x" ] && while read -r c; do n=$((n+c)); done <"$w/n$x"
eval "n$x=$((n)) m$x=$((m))"
done
printf "%%s %%d %%d %%d %%d %%d\n" "$t" "$s" "$no" "$mo" "$ne" "$me"
cat "$w/to" "$w/te"
for x in o e; do : >"$w/$x"; mv "$w/$x" "$w/$x.$k"; rm -f "$w/n$x" "$w/$x.$((k-%d))" "$w/n$x.$((k-%d))"; done`,
	wire.MaxShellOutputBytes, keptFiles, keptFiles)

// wordEnd is the keeper's word that the shell has ended.
const wordEnd = "end"

// enter is the part of a starter that enters the directory d and looks for the shell s.
const enter = `if [ -n "$d" ]; then ` +
	`case $d in "~") d=$HOME ;; "~/"*) d=$HOME/${d#"~/"} ;; /*) ;; *) d=./$d ;; esac; ` +
	`[ -e "$d" ] || no ` + wordCwd + ` not_found; [ -d "$d" ] || no ` + wordCwd + ` not_directory; ` +
	`CDPATH= cd "$d" >/dev/null 2>&1 || no ` + wordCwd + ` unreadable; fi; ` +
	`command -v "$s" >/dev/null 2>&1 || no ` + wordShell + ` not_found; `

// What the keeper is sent: lines for the shell, each behind feed, and the word to interrupt what
// runs. Hosts do not pass every signal on that a channel asks for.
const (
	feed      = "+"
	interrupt = "int"
)

// fed is a text for the shell as the keeper is sent it; it ends with its newline.
func fed(text string) string {
	return feed + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+feed) + "\n"
}

// keeperCommand is the line that the account's login shell is given.
func keeperCommand(token, cwd, dialect string) string {
	var b strings.Builder
	b.WriteString("exec sh -c")
	for _, arg := range []string{keeper, "webcodex", token, cwd, dialect} {
		b.WriteByte(' ')
		quote(&b, arg)
	}
	return b.String()
}

// beginLine is the line with a command. The shell has read all of it when it says that it begins.
func beginLine(token, dir, command string) string {
	o, e := shell.Quote(dir+"/o"), shell.Quote(dir+"/e")
	return `\command printf '%s\n' ` + token + ` >&9; ( umask 077; set +C; : >` + o + `; : >` + e + ` ); \command eval ` + shell.Quote(command) +
		` </dev/null >>` + o + ` 2>>` + e + " 9>&-\n"
}

// answerLine is sent only then, so nothing that runs has seen its token. Another sh answers: what
// the shell has made of its functions, options and aliases does not matter.
func answerLine(token, sh, dir string, number int) string {
	return `\command ` + shell.Quote(sh) + ` ` + shell.Quote(dir+"/a") + ` ` + token + ` "$?" ` + shell.Quote(dir) + fmt.Sprintf(" %d >&9 9>&-\n", number)
}
