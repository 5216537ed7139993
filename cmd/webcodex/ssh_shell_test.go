package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/run"
	"webcodex/commands/session"
	"webcodex/commands/shell"
	"webcodex/internal/fault"
	"webcodex/runner/ssh/sshtest"
	"webcodex/runner/wire"
)

// A Session that names a resource has its persistent shell there: in the first directory and the
// first shell that was named, on the connection that its other commands have.
// Covers: EXE-12, SHL-05, SHL-09, SSH-17
func TestThePersistentShellOfANamedResource(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	there := t.TempDir()
	dirs := map[string]string{}
	for _, d := range []string{"call", "session", "resource"} {
		dirs[d] = filepath.Join(there, d)
		sshtest.Must(t, os.Mkdir(dirs[d], 0o700))
	}
	r.settings(r.resource("build", ""), r.resource("placed", fmt.Sprintf("default_cwd = %q", dirs["resource"])))
	login := strings.TrimSpace(must[run.ShellOut](r.world, "run_shell", with(r.on(args{"resource": "build"}), args{"command": "pwd"})).Stdout)
	for _, c := range []struct {
		context, call args
		dir, shell    string
		told          string // of the directory: never the resource's own
	}{
		{args{"resource": "build"}, args{}, login, "sh", ""},
		{args{"resource": "placed"}, args{}, dirs["resource"], "sh", ""},
		{args{"resource": "placed", "default_cwd": dirs["session"], "default_shell": "bash"}, args{}, dirs["session"], "bash", dirs["session"]},
		{args{"resource": "placed", "default_cwd": dirs["session"], "default_shell": "bash"}, args{"cwd": dirs["call"]}, dirs["call"], "bash", dirs["call"]},
		{args{"resource": "placed", "default_cwd": dirs["session"], "default_shell": "bash"}, args{"shell": "sh"}, dirs["session"], "sh", dirs["session"]},
	} {
		s := r.on(c.context)
		v := must[shell.View](r.world, "open_session_shell", with(s, c.call))
		if v.Executor != "ssh" || v.Resource == nil || *v.Resource != c.context["resource"] || v.Dialect != c.shell || (v.Cwd == nil) != (c.told == "") || v.Cwd != nil && *v.Cwd != c.told {
			t.Errorf("%v %v: %+v", c.context, c.call, v)
		}
		at := with(s, args{"shell_id": v.ShellID})
		connections, commands := r.host.Connections(), r.host.Commands()
		if got := r.in(at, "pwd; echo ${SSH_CONNECTION:+ssh}${BASH_VERSION:+bash}; keep=yes"); got != c.dir+"\nssh"+strings.TrimPrefix(c.shell, "sh")+"\n" {
			t.Errorf("%v %v: %q", c.context, c.call, got)
		}
		if got := r.in(at, "echo $keep"); got != "yes\n" {
			t.Errorf("%q", got)
		}
		must[run.ShellOut](r.world, "run_shell", with(s, args{"command": "true", "cwd": "/"}))
		if r.host.Connections() != connections || r.host.Commands() != commands+1 {
			t.Errorf("%d connections and %d channels more", r.host.Connections()-connections, r.host.Commands()-commands)
		}
		if c := must[shell.CloseOut](r.world, "close_session_shell", at); c.State != wire.ShellClosed || c.Remote != "" {
			t.Errorf("%+v", c)
		}
	}
	s := r.on(args{"resource": "build", "default_cwd": "/no/such/DIRECTORY"})
	if f := refusalOf(t, r.call("open_session_shell", s)); f.Kind != string(fault.InvalidPath) || f.Reason != "not_found" || *f.CommandStarted {
		t.Errorf("%+v", f)
	}
	for _, mark := range []string{dirs["resource"], "KEYDIRMARK"} {
		for file, raw := range r.atRest() {
			if strings.Contains(string(raw), mark) {
				t.Errorf("%s tells %s", file, mark)
			}
		}
	}
}

// The Runner of this process can keep shells, here and on resources.
func TestCapabilitiesOfShells(t *testing.T) {
	t.Parallel()
	r := newWorld(t, "process")
	has := r.srv.fleet.Runners()[0].Capabilities
	for _, op := range []wire.Op{wire.OpSSHShell, wire.OpShellOpen, wire.OpShellOpenSSH} {
		if !slices.Contains(has, string(op)) {
			t.Errorf("%s is not announced: %v", op, has)
		}
	}
}

// What changes of a resource makes the shells on it unusable, and no others; they can be closed.
// Closing the Session closes the shell there.
// Covers: SHL-16, SHL-17, SHL-19, SSH-16
func TestAChangedResourceMakesItsShellStale(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	r.settings(r.resource("build", ""), r.resource("other", ""))
	s, o, local := r.on(args{"resource": "build"}), r.on(args{"resource": "other"}), r.on(args{})
	ids := map[string]args{}
	for name, of := range map[string]args{"build": s, "other": o, "local": local} {
		ids[name] = with(of, args{"shell_id": must[shell.View](r.world, "open_session_shell", of).ShellID})
		r.in(ids[name], "keep=yes")
	}
	for _, change := range [][]string{{r.resource("build", "default_cwd = \"/\""), r.resource("other", "")}, {r.resource("other", "")}} {
		r.settings(change...)
		for _, tool := range []string{"execute_session_shell", "get_session_shell_status"} {
			a := ids["build"]
			if tool == "execute_session_shell" {
				a = with(a, args{"command": "touch " + r.repo + "/mark"})
			}
			f := refusalOf(t, r.call(tool, a))
			if f.Kind != string(fault.ShellStale) || f.Reason != "resource_changed" || *f.CommandStarted {
				t.Errorf("%s: %+v", tool, f)
			}
		}
		for _, name := range []string{"other", "local"} {
			if got := r.in(ids[name], "echo $keep"); got != "yes\n" {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
	if c := must[shell.CloseOut](r.world, "close_session_shell", ids["build"]); c.State != wire.ShellClosed || c.AlreadyClosed {
		t.Errorf("%+v", c)
	}
	if f := refusalOf(t, r.call("open_session_shell", s)); f.Kind != string(fault.SSHResourceNotFound) {
		t.Errorf("%+v", f)
	}
	if len(r.marks()) != 0 {
		t.Error("a command ran")
	}
	pid := strings.TrimSpace(r.in(ids["other"], "echo $$"))
	must[session.CloseOut](r.world, "close_session", args{"session_id": o["session_id"]})
	if _, err := os.Stat("/proc/" + pid); err == nil {
		t.Error("the shell there outlived its Session")
	}
}

// A connection that breaks takes the shell with it: it is lost, and told so; the command that ran
// has an unknown outcome.
// Covers: SHL-26
func TestARemoteShellWhoseConnectionBreaks(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	s := r.on(args{"resource": "build"})
	at := with(s, args{"shell_id": must[shell.View](r.world, "open_session_shell", s).ShellID})
	out := r.call("execute_session_shell", with(at, args{"command": "echo begun; kill -9 $(ps -o ppid= -p $PPID)"}))
	f := refusalOf(t, out)
	if !out.IsError || f.Kind != string(fault.ShellResetRequired) || f.Reason != wire.ShellByTransport || !*f.CommandStarted ||
		!strings.Contains(string(out.Output), `"execution_state":"outcome_unknown"`) {
		t.Errorf("%s", out.Text)
	}
	if v := must[shell.View](r.world, "get_session_shell_status", at); v.State != wire.ShellLost || v.Remote != "unknown" {
		t.Errorf("%+v", v)
	}
	again := with(s, args{"shell_id": must[shell.View](r.world, "open_session_shell", s).ShellID})
	if got := r.in(again, "echo again"); got != "again\n" {
		t.Errorf("%q", got)
	}
}
