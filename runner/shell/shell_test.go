package shell

import (
	"strings"
	"testing"

	"webcodex/runner/wire"
)

// each runs a test with both dialects.
func each(t *testing.T, test func(t *testing.T, w *world, o *opened)) {
	eachWith(t, Options{}, test)
}

func eachWith(t *testing.T, options Options, test func(t *testing.T, w *world, o *opened)) {
	for _, dialect := range wire.Shells {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options)
			test(t, w, w.open(wire.ShellOpenIn{Shell: dialect}))
		})
	}
}

// A shell is one process that keeps what a process keeps, command for command.
// Covers: SHL-03, SHL-11, SHL-28
func TestAShellKeepsItsState(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, o *opened) {
		if v := o.view; v.State != wire.ShellRunning || v.Cwd != "." || v.Executor != "local" || !v.ID.Valid() || v.Created == "" {
			t.Errorf("%+v", v)
		}
		pid := o.prints("echo $$")
		if got := o.prints("pwd"); got != w.root+"\n" {
			t.Errorf("it began in %q", got)
		}
		if out := o.does("mkdir -p 'a b/c'; cd 'a b/c'; export E=1; P=2; umask 027; f() { echo \"f $P\"; }; HOME2=$HOME; unset HOME; set -f; false"); *out.ExitCode != 1 {
			t.Errorf("%+v", out)
		}
		got := o.prints(`pwd; sh -c 'echo "$E$P"'; echo "$P" "${HOME-none}"; umask; f; echo *`)
		if want := w.root + "/a b/c\n1\n2 none\n0027\nf 2\n*\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if again := o.prints("echo $$"); again != pid {
			t.Errorf("another process: %s and %s", pid, again)
		}
		if got := o.prints("for n in 0 1 2; do test -t $n && echo terminal; done; tty; true"); got != "not a tty\n" {
			t.Errorf("a terminal: %q", got)
		}
		if n := o.state().Commands; n != 6 {
			t.Errorf("%d commands", n)
		}
		o.shut()
		w.nothingLeft(pid)
	})
}

// Errors that would end a script end a command here, and nothing of it.
func TestAnErrorEndsACommandAlone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ *world, o *opened) {
		o.prints("keep=yes")
		for _, c := range []string{"if", "echo '", "echo ${zz?unset}", "readonly R=1; R=2", "set -u; echo $nope", ". /nonexistent/x", "no_such_command", "cd /nonexistent",
			": </nonexistent/x", "eval 'case'", "$(exit 7)", ")", "{", "<<E", "cat <<E\nx"} {
			out := o.does(c)
			t.Logf("%q: %d %q", c, *out.ExitCode, out.Stderr.Text)
			o.prints("set +u")
		}
		if got := o.prints("echo $keep"); got != "yes\n" {
			t.Errorf("%q", got)
		}
	})
}

// What a text holds arrives as it is; a command that reads gets an end and cannot eat what is for
// the shell.
func TestTextArrivesAsItIs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ *world, o *opened) {
		for _, text := range []string{"", "a b", `it's`, `\`, `\\n`, "!", "!!", `$HOME "x" ` + "`id`", "a\nb", "-n", "ü€𝄞", "'\"'\"'", "#", "%s%n", "\t", "~", "*", "\r", "\x01\x02", "\xff\xfe"} {
			if got := o.prints("printf '%s|' " + Quote(text)); text != "\xff\xfe" && got != text+"|" {
				t.Errorf("%q came as %q", text, got)
			}
		}
		if got := o.prints("cat; read x || echo end; cat /dev/stdin | wc -c; exec </dev/null; cat"); strings.Join(strings.Fields(got), " ") != "end 0" {
			t.Errorf("%q", got)
		}
		long := "true '" + strings.Repeat("!", wire.MaxShellCommandBytes-len("true ''")) + "'"
		o.prints(long)
		quotes := "true " + strings.Repeat("'", wire.MaxShellCommandBytes-len("true ")-2)
		if out := o.does(quotes); *out.ExitCode == 0 { // an odd number of them
			t.Errorf("%+v", out)
		}
		o.prints(strings.Repeat("true\n", 3000))
	})
}
