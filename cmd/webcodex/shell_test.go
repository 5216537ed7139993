package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/run"
	"webcodex/commands/session"
	"webcodex/commands/shell"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/mcp"
	"webcodex/runner/wire"
)

// opened is a Session's open shell, and the arguments that name it.
func (w *world) opened(s session.WorkOut, a args) (shell.View, args) {
	w.t.Helper()
	v := must[shell.View](w, "open_session_shell", with(args{"project": w.project, "session_id": s.SessionID}, a))
	return v, args{"project": w.project, "session_id": s.SessionID, "shell_id": v.ShellID}
}

// in runs a command in a shell that has to end well, and gives what it printed.
func (w *world) in(at args, command string) string {
	w.t.Helper()
	r := w.call("execute_session_shell", with(at, args{"command": command}))
	var out shell.ExecuteOut
	if err := r.Decode(&out); err != nil || r.IsError || !r.Success || out.State != event.Completed || out.ShellState != wire.ShellRunning {
		w.t.Fatalf("%s: %s", command, r.Text)
	}
	return out.Stdout
}

// The four tools, end to end: a shell keeps its state, its end is told as what it is, its id is
// spent; of all that the log keeps the life alone.
// Covers: SHL-01, SHL-04, SHL-13, SHL-18, SHL-29, SHL-31
func TestThePersistentShellOfASession(t *testing.T) {
	t.Parallel()
	var tools []string
	for _, tool := range mcp.Catalogue() {
		if strings.Contains(tool.Spec.Name, "session_shell") {
			tools = append(tools, tool.Spec.Name)
		}
	}
	if got := strings.Join(tools, " "); got != "open_session_shell execute_session_shell get_session_shell_status close_session_shell" {
		t.Errorf("%s", got)
	}
	w := newWorld(t, "process")
	s := w.work(args{})
	v, at := w.opened(s, args{})
	if !v.ShellID.Valid() || v.State != wire.ShellRunning || v.Executor != "local" || v.Dialect != "sh" || *v.Cwd != "." || v.Resource != nil || v.Reason != nil ||
		v.Project != w.project || v.Session != s.SessionID || v.IdleSecs != 1800 || v.Client != w.srv.settings.Client {
		t.Errorf("%+v", v)
	}
	pid := w.in(at, "cd /; E=ENVMARK; export X=$E; echo $((40+2))OUTMARK >&2; echo $$")
	if got := w.in(at, "pwd; echo $E; sh -c 'echo $X'; echo $$"); got != "/\nENVMARK\nENVMARK\n"+pid {
		t.Errorf("%q", got)
	}
	// What runs by itself has nothing of it.
	by := args{"project": w.project, "session_id": s.SessionID, "command": "echo $PPID $$ $E $X; pwd"}
	if out := must[run.ShellOut](w, "run_shell", by); strings.Contains(out.Stdout, strings.TrimSpace(pid)) || strings.Contains(out.Stdout, "ENVMARK") || !strings.HasSuffix(out.Stdout, w.repo+"\n") {
		t.Errorf("run_shell: %q", out.Stdout)
	}
	r := w.call("execute_session_shell", with(at, args{"command": "echo COMMANDMARK; exit 3"}))
	var out shell.ExecuteOut
	if err := r.Decode(&out); err != nil || r.IsError || r.Success || out.ExitCode == nil || *out.ExitCode != 3 || out.ShellState != wire.ShellExited ||
		out.FailureKind != string(fault.ShellProcessExited) || out.Stdout != "COMMANDMARK\n" || out.State != event.Completed {
		t.Errorf("%s", r.Text)
	}
	if r := w.call("execute_session_shell", with(at, args{"command": "true"})); !r.IsError || r.Kind() != string(fault.ShellProcessExited) {
		t.Errorf("%s", r.Text)
	}
	next, at2 := w.opened(s, args{"shell": "bash"})
	if r := w.call("open_session_shell", args{"project": w.project, "session_id": s.SessionID}); r.Kind() != string(fault.ShellAlreadyOpen) ||
		!strings.Contains(string(r.Output), string(next.ShellID)) {
		t.Errorf("%s", r.Text)
	}
	for _, already := range []bool{false, true, true} {
		c := must[shell.CloseOut](w, "close_session_shell", at2)
		if c.AlreadyClosed != already || c.State != wire.ShellClosed || c.Reason != wire.ShellByCaller {
			t.Errorf("%+v", c)
		}
	}
	if v := must[shell.View](w, "get_session_shell_status", at2); v.State != wire.ShellClosed || v.Ended == nil || *v.Reason != wire.ShellByCaller {
		t.Errorf("%+v", v)
	}
	var lives []string
	for _, c := range w.commits(s.SessionID) {
		for _, e := range c.Events {
			if f, ok := e.(event.ToolCallFinished); ok && f.Shell != nil {
				lives = append(lives, fmt.Sprint(f.Shell.Action, " ", f.Shell.State, " ", f.Shell.ID == v.ShellID, f.Effect.CommandStarted, f.Effect.CommandCompleted, f.ErrorKind))
			}
		}
	}
	want := "open running true true false;execute running true true true;execute running true true true;execute exited true true true;open running false true false;" +
		"close closed false false false;close closed false false false;close closed false false false"
	if got := strings.Join(lives, ";"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for file, raw := range w.atRest() {
		for _, mark := range []string{"ENVMARK", "OUTMARK", "COMMANDMARK"} {
			if strings.Contains(string(raw), mark) {
				t.Errorf("%s has %s", file, mark)
			}
		}
	}
}

// What the call names comes first, then the Session's own; each for itself. A shell that is open
// stays where it was opened, whatever the Session says later.
// Covers: SHL-07, SHL-12, EXE-13
func TestWhereAShellIsOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	for _, d := range []string{"call", "session"} {
		if err := os.Mkdir(filepath.Join(w.repo, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const which = "pwd; echo ${BASH_VERSION:+bash}"
	for _, c := range []struct {
		context, call args
		cwd, dialect  string
	}{
		{args{}, args{}, ".", "sh"},
		{args{"default_cwd": "session", "default_shell": "bash"}, args{}, "session", "bash"},
		{args{"default_cwd": "session", "default_shell": "bash"}, args{"cwd": "call"}, "call", "bash"},
		{args{"default_cwd": "session", "default_shell": "bash"}, args{"shell": "sh"}, "session", "sh"},
		{args{"default_cwd": "session", "default_shell": "bash"}, args{"shell": "sh", "cwd": "call"}, "call", "sh"},
	} {
		s := w.work(args{"execution_context": c.context})
		v, at := w.opened(s, c.call)
		want := filepath.Join(w.repo, c.cwd) + "\n" + map[string]string{"sh": "\n", "bash": "bash\n"}[c.dialect]
		if got := w.in(at, which); *v.Cwd != c.cwd || v.Dialect != c.dialect || got != want {
			t.Errorf("%v %v: %+v %q", c.context, c.call, v, got)
		}
		before := w.in(at, "cd ..; keep=yes; "+which)
		w.call("update_session_context", args{"project": w.project, "session_id": s.SessionID, "execution_context": args{"default_cwd": "call", "default_shell": "sh"}})
		if got := w.in(at, which); got != before || w.in(at, "echo $keep") != "yes\n" {
			t.Errorf("it was moved: %q, then %q", before, got)
		}
		if now := must[shell.View](w, "get_session_shell_status", at); *now.Cwd != *v.Cwd || now.Dialect != v.Dialect {
			t.Errorf("%+v", now)
		}
		must[shell.CloseOut](w, "close_session_shell", at)
		again, _ := w.opened(s, args{})
		if *again.Cwd != "call" || again.Dialect != "sh" {
			t.Errorf("opened again: %+v", again)
		}
	}
	s := w.work(args{"execution_context": args{"default_cwd": "none"}})
	r := w.call("open_session_shell", args{"project": w.project, "session_id": s.SessionID})
	if f := refusalOf(t, r); !r.IsError || f.Kind != "invalid_path" || f.Reason != "not_found" || *f.CommandStarted {
		t.Errorf("%s", r.Text)
	}
}

// A read-only Session opens and runs nothing; what is open from before can be looked at and closed.
// Covers: SHL-06, SHL-17
func TestAReadOnlySessionClosesItsShell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	_, at := w.opened(s, args{})
	w.work(args{"session_id": s.SessionID, "session_mode": "read_only"})
	for _, tool := range []string{"open_session_shell", "execute_session_shell"} {
		a := with(at, args{"command": "touch mark"})
		if tool == "open_session_shell" {
			a = args{"project": w.project, "session_id": s.SessionID}
		}
		if r := w.call(tool, a); r.Kind() != "session_guard_denied" {
			t.Errorf("%s: %s", tool, r.Text)
		}
	}
	if v := must[shell.View](w, "get_session_shell_status", at); v.State != wire.ShellRunning || v.Commands != 0 {
		t.Errorf("%+v", v)
	}
	if c := must[shell.CloseOut](w, "close_session_shell", at); c.AlreadyClosed || c.State != wire.ShellClosed {
		t.Errorf("%+v", c)
	}
	if len(w.marks()) != 0 {
		t.Error("a command ran")
	}
}

// An id is for its Session and its Project, and for whoever may use them now.
// Covers: SHL-14, SHL-15
func TestAShellIsOfItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s, other := w.work(args{}), w.work(args{})
	_, at := w.opened(s, args{})
	there := w.work(args{"project": w.other})
	for _, tool := range []string{"execute_session_shell", "get_session_shell_status", "close_session_shell"} {
		for name, c := range map[string]struct {
			a    args
			kind string
		}{
			"another Session":                   {args{"session_id": other.SessionID}, string(fault.ShellNotFound)},
			"another Project":                   {args{"project": w.other}, "session_project_mismatch"},
			"another Project and its Session":   {args{"project": w.other, "session_id": there.SessionID}, string(fault.ShellNotFound)},
			"no such id":                        {args{"shell_id": "wc_shell_00000000000000000000000000000000"}, string(fault.ShellNotFound)},
			"no id":                             {args{"shell_id": "the last one"}, string(fault.ShellNotFound)},
			"a Session that is none":            {args{"session_id": "wc_sess_00000000000000000000000000000000"}, "unknown_session_id"},
			"without a Session, though one has": {args{"session_id": nil}, "invalid_arguments"},
		} {
			a := with(at, c.a)
			if tool == "execute_session_shell" {
				a["command"] = "touch mark"
			}
			if r := w.call(tool, a); !r.IsError || r.Kind() != c.kind {
				t.Errorf("%s with %s: %s", tool, name, r.Text)
			}
		}
	}
	// A second principal sees nothing of it; the rights of one are looked at again for each call.
	p := w.admit(access.CreateIn{Kind: "user"})
	if r := p.call("get_session_shell_status", at); r.Kind() != "session_authority_denied" {
		t.Errorf("%s", r.Text)
	}
	own := p.work(w.project)
	open := args{"project": w.project, "session_id": own.SessionID}
	theirs := with(open, args{"shell_id": ask[shell.View](p, "open_session_shell", open).ShellID, "command": "touch mark"})
	if _, err := w.srv.second.Revoke(t.Context(), access.RevokeIn{ID: string(p.issued.ID)}); err != nil {
		t.Fatal(err)
	}
	if r, err := p.client.CallTool(t.Context(), "execute_session_shell", theirs); err == nil {
		t.Errorf("a revoked token: %s", r.Text)
	}
	if len(w.marks()) != 0 {
		t.Error("a command ran")
	}
}

// Bounds are refused before anything is sent, at one past each.
// Covers: SHL-22, SHL-30
func TestBoundsOfAShellCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	_, at := w.opened(s, args{})
	w.refused("execute_session_shell", with(at, args{"command": strings.Repeat("x", 16_001)}), "invalid_arguments", "command")
	w.refused("execute_session_shell", with(at, args{"command": strings.Repeat("é", 8_000) + "x"}), "invalid_arguments", "command")
	w.refused("execute_session_shell", with(at, args{"command": ""}), "invalid_arguments", "command")
	w.refused("execute_session_shell", with(at, args{"command": "a\x00b"}), "invalid_arguments", "command")
	for _, secs := range []int{0, -1, 3_601} {
		w.refused("execute_session_shell", with(at, args{"command": "true", "timeout_secs": secs}), "invalid_arguments", "timeout_secs")
	}
	w.refused("open_session_shell", args{"project": w.project, "session_id": s.SessionID, "shell": "zsh"}, "invalid_arguments", "shell")
	w.refused("open_session_shell", args{"project": w.project, "session_id": s.SessionID, "cwd": strings.Repeat("x", 1_025)}, "invalid_arguments", "cwd")
	w.refused("open_session_shell", args{"project": w.project, "session_id": s.SessionID, "cwd": "../x"}, "invalid_path", "cwd")
	w.in(at, "#"+strings.Repeat("é", 7_999)+"x")
	r := w.call("execute_session_shell", with(at, args{"command": "sleep 60", "timeout_secs": 1}))
	var out shell.ExecuteOut
	if err := r.Decode(&out); err != nil || r.IsError || r.Success || !out.TimedOut || out.State != event.TimedOut || out.ShellState != wire.ShellRunning || out.ExitCode != nil {
		t.Errorf("%s", r.Text)
	}
	r = w.call("execute_session_shell", with(at, args{"command": "echo seen; trap '' INT; sleep 60", "timeout_secs": 1}))
	if !r.IsError || r.Kind() != string(fault.ShellResetRequired) || !strings.Contains(string(r.Output), `"stdout":"seen\n"`) ||
		!strings.Contains(string(r.Output), `"execution_state":"timed_out"`) {
		t.Errorf("%s", r.Text)
	}
	_, at = w.opened(s, args{})
	for chars, want := range map[int]int{0: shell.DefaultOutputChars, 5: 5, 1 << 30: 200_000} {
		r := w.call("execute_session_shell", with(at, args{"command": "head -c 200000 /dev/zero | tr '\\0' x; echo e >&2", "max_output_chars": chars}))
		if err := r.Decode(&out); err != nil || len(out.Stdout) != want || out.StdoutTruncated != (want < 200_000) || out.StdoutBytes != 200_000 || out.Stderr != "e\n" || out.StderrTruncated {
			t.Errorf("%d: %d characters, %v %v", chars, len(out.Stdout), out.StdoutTruncated, err)
		}
	}
}

// Two commands at once: the second is refused and does nothing. Closing the Session meanwhile ends
// both the command and the shell before it is answered.
// Covers: SHL-19, SHL-20, SHL-21
func TestAClosedSessionEndsItsShell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	_, at := w.opened(s, args{})
	pids := strings.Fields(w.in(at, "sleep 65 >/dev/null & echo; echo $$ $!"))
	ended := make(chan shell.ExecuteOut, 1)
	go func() {
		var out shell.ExecuteOut
		_ = w.call("execute_session_shell", with(at, args{"command": "touch began; sleep 65"})).Decode(&out)
		ended <- out
	}()
	for {
		if _, err := os.Stat(filepath.Join(w.repo, "began")); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if r := w.call("execute_session_shell", with(at, args{"command": "touch mark"})); r.Kind() != string(fault.ShellBusy) || !strings.Contains(r.Text, "not_started") && !strings.Contains(string(r.Output), "not_started") {
		t.Errorf("%s", r.Text)
	}
	must[session.CloseOut](w, "close_session", args{"session_id": s.SessionID})
	for _, pid := range pids {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("%s lives after the close", pid)
		}
	}
	if out := <-ended; out.ShellState != wire.ShellClosed || out.FailureKind != "shell_closed" || out.State != event.Cancelled || out.CommandCompleted {
		t.Errorf("%+v", out)
	}
	if v := must[shell.View](w, "get_session_shell_status", at); v.State != wire.ShellClosed || *v.Reason != wire.ShellBySession {
		t.Errorf("%+v", v)
	}
	w.refused("open_session_shell", args{"project": w.project, "session_id": s.SessionID}, "session_closed", "")
	if len(w.marks()) != 0 {
		t.Error("a command ran")
	}
	// A close that comes while a shell is being opened.
	for range 3 {
		s := w.work(args{})
		done := make(chan string, 1)
		go func() {
			done <- w.call("open_session_shell", args{"project": w.project, "session_id": s.SessionID}).Kind()
		}()
		must[session.CloseOut](w, "close_session", args{"session_id": s.SessionID})
		if kind := <-done; kind != "" && kind != "session_closed" && kind != string(fault.ShellSessionInactive) {
			t.Errorf("%s", kind)
		}
		if r := w.call("read_session_summary", args{"session_id": s.SessionID}); strings.Contains(string(r.Output), "recovering") {
			t.Errorf("%s", r.Output)
		}
	}
}

// After a restart a shell is lost, and is told so; nothing is taken up again.
// Covers: SHL-27
func TestAShellDoesNotOutliveTheServer(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var s session.WorkOut
	var at, closed args
	var pid string
	t.Run("before", func(t *testing.T) {
		w := openWorld(t, base, func(*upFlags) {})
		s = w.work(args{})
		_, closed = w.opened(s, args{})
		must[shell.CloseOut](w, "close_session_shell", closed)
		_, at = w.opened(s, args{})
		pid = strings.TrimSpace(w.in(at, "echo $$"))
	})
	if _, err := os.Stat("/proc/" + pid); err == nil {
		t.Error("the shell outlived the server")
	}
	w := openWorld(t, base, func(*upFlags) {})
	if g := must[shell.Gone](w, "get_session_shell_status", at); g.State != wire.ShellLost || g.Reason != wire.ShellByRestart {
		t.Errorf("%+v", g)
	}
	if g := must[shell.Gone](w, "get_session_shell_status", closed); g.State != wire.ShellClosed || g.Reason != wire.ShellByCaller {
		t.Errorf("%+v", g)
	}
	if r := w.call("execute_session_shell", with(at, args{"command": "touch mark"})); r.Kind() != string(fault.ShellResetRequired) || len(w.marks()) != 0 {
		t.Errorf("%s", r.Text)
	}
	if c := must[shell.CloseOut](w, "close_session_shell", at); !c.AlreadyClosed || c.State != wire.ShellLost {
		t.Errorf("%+v", c)
	}
	w.opened(s, args{})
}
