package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// Output that is what a frame is, byte for byte, ends no command, on any stream or descriptor that
// a command has.
// Covers: SHL-23
func TestOutputCannotForgeTheEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, o *opened) {
		frame := strings.Repeat("0123456789abcdef", 2) + " 0\n"
		forge := "f=" + Quote(frame) + "\n" + `i=0; while [ $i -lt 300 ]; do printf '%s' "$f"; printf '%s' "$f" >&2; i=$((i+1)); done
for n in 3 4 5 6 7 8 9; do ( printf '%s' "$f" >&$n ) 2>/dev/null; done
set | grep -c '[0-9a-f]\{32\} 0' ; env | grep -c '^[^W].*[0-9a-f]\{32\}'; sleep 0.1; echo last; exit_code() { return 4; }; exit_code`
		out := o.does(forge)
		if *out.ExitCode != 4 || !strings.HasPrefix(out.Stdout.Text, strings.Repeat(frame, 300)) || !strings.HasSuffix(out.Stdout.Text, "last\n") ||
			out.Stderr.Text != strings.Repeat(frame, 300) {
			t.Errorf("%d %q %q", *out.ExitCode, tail(out.Stdout.Text), tail(out.Stderr.Text))
		}
		// Each byte of a frame alone, then the next.
		for i := range frame {
			o.prints("printf '%s' " + Quote(frame[:i+1]))
		}
		if got := o.prints("echo $f"); got != frame {
			t.Errorf("%q", got)
		}
	})
}

func tail(s string) string { return s[max(0, len(s)-100):] }

// Whoever reaches into the shell and writes on its control channel ends no command either: what is
// not the frame that was asked for is damage.
// Covers: SHL-19, SHL-23, SHL-26
func TestADamagedControlChannelEndsTheShell(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	each(t, func(t *testing.T, w *world, o *opened) {
		pid := o.prints("echo $$")
		out, f := o.run(`for n in /proc/$$/fd/*; do case $(readlink $n) in pipe:*) case ${n##*/} in 0|1|2) ;; *) echo 0123 0 >$n ;; esac ;; esac; done; sleep 30; echo done`, 20*time.Second)
		if f != nil || out.Completed || !out.Reset || out.Shell.State != wire.ShellPoisoned || out.Shell.Reason != wire.ShellByDamage {
			t.Fatalf("%+v %v", out, f)
		}
		w.nothingLeft(pid)
		o.refused(fault.ShellResetRequired)
	})
}

// refused says that the shell takes no command, and that nothing is started.
func (o *opened) refused(want fault.Kind) {
	o.t.Helper()
	marker := filepath.Join(o.root, "started")
	out, f := o.run("touch "+Quote(marker), time.Second)
	if kindOf(f) != want || f.ExecutionState != "not_started" {
		o.t.Errorf("%v %+v, want %s", f, out, want)
	}
	if _, err := os.Stat(marker); err == nil {
		o.t.Error("a command was started")
	}
}

// What a command wrote is whole, and nothing of one that goes on in the background comes with the
// next: it goes on, unheard.
// Covers: SHL-24
func TestOutputEndsWhereTheCommandEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, o *opened) {
		o.prints(`while :; do echo LEAK; echo LEAK >&2; done & echo $! >pid`)
		pid := strings.TrimSpace(o.prints("cat pid"))
		for i := range 60 {
			out := o.does(fmt.Sprintf("printf %%s a%d; printf %%s b%d >&2", i, i))
			if out.Stdout.Text != fmt.Sprint("a", i) || out.Stderr.Text != fmt.Sprint("b", i) {
				t.Fatalf("%d: %q %q", i, out.Stdout.Text, out.Stderr.Text)
			}
		}
		if !alive(pid) {
			t.Error("the command in the background did not go on")
		}
		out := o.does("head -c 3000000 /dev/zero | tr '\\0' x; printf END; printf ERR >&2")
		if out.Stdout.Bytes != 3_000_003 || !strings.HasSuffix(out.Stdout.Text, "xEND") || out.Stderr.Text != "ERR" {
			t.Errorf("%d %q %q", out.Stdout.Bytes, tail(out.Stdout.Text), out.Stderr.Text)
		}
		o.prints("kill " + pid + "; wait; exec 3>&1; exec >/dev/null")
		if got := o.prints("echo back"); got != "back\n" {
			t.Errorf("%q", got)
		}
	})
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// Each stream is bounded for itself, and says what it left away.
// Covers: SHL-22
func TestStreamsAreBoundedApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	o := w.open(wire.ShellOpenIn{})
	for _, c := range []struct {
		bytes     int
		truncated bool
	}{{wire.MaxShellOutputBytes, false}, {wire.MaxShellOutputBytes + 1, true}, {40 << 20, true}} {
		for _, to := range []string{"1", "2"} {
			out := o.does(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' y >&%s; echo other >&$((3-%s))", c.bytes, to, to))
			flooded, other := out.Stdout, out.Stderr
			if to == "2" {
				flooded, other = other, flooded
			}
			if flooded.Bytes != int64(c.bytes) || flooded.Truncated != c.truncated || len(flooded.Text) != wire.MaxShellOutputBytes ||
				flooded.DroppedBytes != int64(c.bytes-wire.MaxShellOutputBytes) || other.Text != "other\n" || other.Truncated {
				t.Errorf("%d to %s: %d kept, %+v", c.bytes, to, len(flooded.Text), other)
			}
		}
	}
	// What is encoded longer than it is long has to travel too.
	stream := shown(full("\x01"), wire.MaxShellOutputBytes)
	if !stream.Truncated || stream.DroppedBytes+int64(len(stream.Text)) != stream.Bytes || len(stream.Text) < 60<<10 {
		t.Errorf("%d of %d, %d dropped", len(stream.Text), stream.Bytes, stream.DroppedBytes)
	}
	if stream := shown(full("é"), wire.MaxShellOutputBytes); stream.Truncated || !strings.HasPrefix(stream.Text, "é") {
		t.Errorf("%d of %d", len(stream.Text), stream.Bytes)
	}
}

func full(of string) *proc.Tail {
	to := proc.NewTail(wire.MaxShellOutputBytes)
	to.Write([]byte(strings.Repeat(of, wire.MaxShellOutputBytes/len(of))))
	return to
}

// A command at its limit is interrupted, and the shell goes on where it was; what it had put into
// the background goes on too.
// Covers: SHL-25
func TestAShellSurvivesATimeLimit(t *testing.T) {
	t.Parallel()
	eachWith(t, Options{patient: 20 * time.Second}, func(t *testing.T, w *world, o *opened) {
		background := lastLine(strings.TrimSpace(o.prints("keep=yes; sleep 60 & echo $!")))
		for _, c := range []string{"echo begun; sleep 60; echo no", "echo begun; while :; do sleep 0.05; done", "echo begun; while :; do :; done",
			"echo begun; sleep 60 | cat; echo no", "echo begun; cat | sleep 60", "echo begun; sh -c 'sleep 60; echo no'", "echo begun; ( sleep 60; echo no )", "echo begun; wait"} {
			out, f := o.run(c, 150*time.Millisecond)
			if f != nil || !out.TimedOut || out.Completed || out.ExitCode != nil || out.Reset || out.Shell.State != wire.ShellRunning ||
				!strings.HasPrefix("begun\n", out.Stdout.Text) {
				t.Errorf("%q: %+v %v", c, out, f)
			}
			if got := o.prints("echo $keep"); got != "yes\n" {
				t.Errorf("%q: then %q", c, got)
			}
		}
		if !alive(background) {
			t.Error("what was in the background was ended")
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		out, f := o.execute(ctx, o.p, wire.ShellExecuteIn{ShellAt: o.at, Command: "sleep 60", Chars: 100})
		if f != nil || !out.Cancelled || out.TimedOut || out.Shell.State != wire.ShellRunning {
			t.Errorf("%+v %v", out, f)
		}
		o.shut()
		w.nothingLeft(background)
	})
}

// A command that ignores the interrupt takes its shell with it: the whole tree is ended, and no
// further command goes there.
// Covers: SHL-19, SHL-26
func TestAShellThatCannotBeBroughtBackIsEnded(t *testing.T) {
	for _, dialect := range wire.Shells {
		for _, c := range []string{"trap '' INT; sleep 61", "sh -c 'trap \"\" INT; while :; do sleep 61; done'", "printf() { :; }; command() { :; }; sleep 61",
			"setsid sh -c 'trap \"\" INT HUP TERM; sleep 61' & trap '' INT; sleep 61"} {
			t.Run(dialect, func(t *testing.T) {
				t.Parallel() // it takes its time, and nothing else
				o := newWorld(t, Options{}).open(wire.ShellOpenIn{Shell: dialect})
				pids := strings.Fields(o.prints("sleep 62 >/dev/null & echo; echo $$ $!"))
				out, f := o.run("echo begun; "+c, 150*time.Millisecond)
				if f != nil || !out.TimedOut || out.Completed || !out.Reset || out.Shell.State != wire.ShellPoisoned || out.Shell.Reason != wire.ShellByTimeout ||
					out.Stdout.Text != "begun\n" {
					t.Errorf("%q: %+v %v", c, out, f)
				}
				if v := o.state(); v.State != wire.ShellPoisoned || v.Ended == "" {
					t.Errorf("%+v", v)
				}
				o.refused(fault.ShellResetRequired)
				for _, pid := range pids {
					if alive(pid) {
						t.Errorf("%q left %s", c, pid)
					}
				}
				o.refusedOpen("")
			})
		}
	}
}
