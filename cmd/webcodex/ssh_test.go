package main

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/run"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/ssh/sshtest"
)

// remoteWorld is a world whose Runner knows a real host as "build".
type remoteWorld struct {
	*world
	host *sshtest.Host
	keys string // the operator's directory: keys, known hosts, settings
}

func newRemoteWorld(t *testing.T) *remoteWorld {
	t.Helper()
	base := t.TempDir()
	r := &remoteWorld{keys: filepath.Join(base, "KEYDIRMARK")}
	sshtest.Must(t, os.Mkdir(r.keys, 0o700))
	sshtest.WriteKey(t, filepath.Join(r.keys, "id"), "ed25519", "")
	r.host = sshtest.Start(t, filepath.Join(r.keys, "id.pub"))
	sshtest.Must(t, os.WriteFile(filepath.Join(r.keys, "known_hosts"), []byte(r.host.Known(r.host.Keys["ed25519"])), 0o600))
	r.settings(r.resource("build", ""))
	r.world = openWorld(t, base, func(f *upFlags) { f.cfg.file = filepath.Join(r.keys, "config.toml") })
	return r
}

func (r *remoteWorld) resource(name, extra string) string {
	me, err := user.Current()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[ssh.resources.%s]\ndescription = \"DESCRIPTIONMARK\"\nhost = \"127.0.0.1\"\nport = %s\nuser = %q\nidentity_files = [%q]\nknown_hosts = [%q]\n%s\n",
		name, r.host.Port, me.Username, filepath.Join(r.keys, "id"), filepath.Join(r.keys, "known_hosts"), extra)
}

func (r *remoteWorld) settings(parts ...string) {
	file := filepath.Join(r.keys, "ssh.toml")
	if err := os.WriteFile(file+".new", []byte(strings.Join(parts, "")), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		panic(err)
	}
}

// on is the arguments of a Session whose commands run on a resource.
func (r *remoteWorld) on(context args) args {
	s := r.work(args{"execution_context": context})
	return args{"project": r.project, "session_id": s.SessionID}
}

// A Session that names a resource runs its shell commands there, in the first directory that was
// named: the call's, the Session's, the resource's, the login's; the shell likewise. A call
// without the Session runs here.
// Covers: EXE-04, EXE-07, EXE-10, EXE-17, EXE-23, SSH-11, NEG-18
func TestShellCommandsRunOnTheNamedResource(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	there := t.TempDir()
	dirs := map[string]string{}
	for _, d := range []string{"call", "session", "resource"} {
		dirs[d] = filepath.Join(there, d)
		sshtest.Must(t, os.Mkdir(dirs[d], 0o700))
	}
	r.settings(r.resource("build", ""), r.resource("placed", fmt.Sprintf("default_cwd = %q", dirs["resource"])))
	const which = "pwd; echo ${SSH_CONNECTION:+ssh}${BASH_VERSION:+bash}"
	login := strings.Fields(must[run.ShellOut](r.world, "run_shell", with(r.on(args{"resource": "build"}), args{"command": which})).Stdout)[0]
	for _, c := range []struct {
		context, call args
		dir, shell    string
	}{
		{args{"resource": "build"}, args{}, login, "sh"},
		{args{"resource": "placed"}, args{}, dirs["resource"], "sh"},
		{args{"resource": "placed", "default_cwd": dirs["session"], "default_shell": "bash"}, args{}, dirs["session"], "bash"},
		{args{"resource": "placed", "default_cwd": dirs["session"], "default_shell": "bash"}, args{"cwd": dirs["call"]}, dirs["call"], "bash"},
		{args{"resource": "placed", "default_cwd": dirs["session"], "default_shell": "bash"}, args{"shell": "sh"}, dirs["session"], "sh"},
	} {
		out := must[run.ShellOut](r.world, "run_shell", with(r.on(c.context), c.call, args{"command": which}))
		want := c.dir + "\nssh" + strings.TrimSuffix(c.shell, "sh")
		if c.shell == "bash" {
			want += "sh"
		}
		if strings.TrimSpace(out.Stdout) != want || out.Shell != c.shell || out.Executor != "ssh" || out.Resource == nil || *out.Resource != c.context["resource"] {
			t.Errorf("%v %v: %+v", c.context, c.call, out)
		}
	}
	local := must[run.ShellOut](r.world, "run_shell", args{"project": r.project, "command": which})
	if strings.TrimSpace(local.Stdout) != r.repo || local.Executor != "local" || local.Resource != nil {
		t.Errorf("without a Session: %+v", local)
	}
	s := r.on(args{"resource": "build", "default_cwd": "/no/such/DIRECTORY"})
	res := r.call("run_shell", with(s, args{"command": "touch " + r.repo + "/mark"}))
	f := refusalOf(t, res)
	if !res.IsError || f.Kind != string(fault.InvalidPath) || f.Reason != "not_found" || *f.CommandStarted || len(r.marks()) != 0 {
		t.Errorf("%s", res.Output)
	}
	for _, bad := range []args{{"resource": "a..b"}, {"resource": "a/b"}, {"resource": "a b"}, {"resource": "build", "default_cwd": "a\nb"}} {
		r.refused("start_session", args{"project": r.project, "title": "x", "execution_context": bad}, "invalid_execution_context", "")
	}
}

// What cannot be reached is told before anything starts, and nothing runs here in its place.
// Covers: SSH-08, SSH-12, NEG-18
func TestAResourceThatCannotBeUsedStartsNothing(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	s := r.on(args{"resource": "build"})
	touch := with(s, args{"command": "touch " + r.repo + "/mark"})
	refused := func(kind fault.Kind, reason string) {
		t.Helper()
		res := r.call("run_shell", touch)
		f := refusalOf(t, res)
		if !res.IsError || f.Kind != string(kind) || f.Reason != reason || *f.CommandStarted || !strings.Contains(string(res.Output), `"execution_state":"not_started"`) {
			t.Errorf("want %s %s: %s", kind, reason, res.Output)
		}
		for _, mark := range []string{"KEYDIRMARK", r.host.Port, "127.0.0.1"} {
			if strings.Contains(res.Text, mark) {
				t.Errorf("the refusal tells %s: %s", mark, res.Text)
			}
		}
	}
	r.settings()
	refused(fault.SSHResourceNotFound, "")
	r.settings(r.resource("build", ""))
	stranger := sshtest.WriteKey(t, filepath.Join(r.keys, "stranger"), "ed25519", "")
	sshtest.Must(t, os.WriteFile(filepath.Join(r.keys, "known_hosts"), []byte(r.host.Known(stranger)), 0o600))
	refused(fault.SSHConnectionFailed, "host_key_changed")
	r.settings("[ssh.resources.build]\npassword = \"x\"\n")
	refused(fault.Unavailable, "ssh_settings_invalid")
	if n := r.marks(); len(n) != 0 || r.host.Commands() != 0 {
		t.Errorf("it ran: %v, %d commands at the host", n, r.host.Commands())
	}
}

// A connection that breaks in the middle leaves an unknown outcome, in the answer and in the
// Session; the command ran once, and the next one dials anew.
// Covers: SSH-09, NEG-19
func TestAResourceThatDiesInTheMiddleIsUnknown(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	s := r.on(args{"resource": "build"})
	once := filepath.Join(r.keys, "once")
	res := r.call("run_shell", with(s, args{"command": "echo x >> " + once + "; sleep 0.3; kill -9 $PPID; sleep 5"}))
	f := refusalOf(t, res)
	if !res.IsError || f.Kind != string(fault.SSHTransportFailed) || f.CommandStarted == nil || !*f.CommandStarted ||
		!strings.Contains(string(res.Output), `"execution_state":"outcome_unknown"`) {
		t.Errorf("%s", res.Output)
	}
	raw, err := os.ReadFile(once)
	if err != nil || string(raw) != "x\n" {
		t.Errorf("it ran as %q, %v", raw, err)
	}
	var ends []event.ToolCallFinished
	for _, c := range r.commits(s["session_id"].(event.SessionID)) {
		for _, e := range c.Events {
			if end, ok := e.(event.ToolCallFinished); ok && end.Effect.State != "" {
				ends = append(ends, end)
			}
		}
	}
	if len(ends) != 1 || ends[0].Effect.State != event.OutcomeUnknown || ends[0].ErrorKind != string(fault.SSHTransportFailed) {
		t.Errorf("recorded: %+v", ends)
	}
	if out := must[run.ShellOut](r.world, "run_shell", with(s, args{"command": "echo again"})); out.Stdout != "again\n" || r.host.Connections() != 2 {
		t.Errorf("%+v, %d connections", out, r.host.Connections())
	}
}

// A command that outlives its answer is a Job like any other: it can be watched and stopped, and
// its limit says that nobody knows what lives on there.
func TestRemoteCommandsBecomeJobs(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	s := r.on(args{"resource": "build"})
	gate := filepath.Join(r.keys, "gate")
	out := must[run.ShellOut](r.world, "run_shell", with(s, args{"command": "echo first; while [ ! -e " + gate + " ]; do sleep 0.05; done; echo last; exit 3", "sync_wait_secs": 1}))
	if !out.Promoted || out.JobID == nil {
		t.Fatalf("%+v", out)
	}
	sshtest.Must(t, os.WriteFile(gate, nil, 0o600))
	item := args{"job_id": *out.JobID}
	var seen run.ObserveOut
	for range 20 {
		if seen = must[run.ObserveOut](r.world, "observe_jobs", args{"items": []args{item}, "wait_secs": 5}); seen.Items[0].Terminal {
			break
		}
		item["after_observation_token"] = seen.Items[0].ObservationToken
	}
	if j := seen.Items[0]; j.ExitCode == nil || *j.ExitCode != 3 || j.Status != "failed" {
		t.Errorf("%+v", j)
	}
	long := must[run.ShellOut](r.world, "run_shell", with(s, args{"command": "echo on; sleep 30", "sync_wait_secs": 0}))
	for range 200 {
		if seen = must[run.ObserveOut](r.world, "observe_jobs", args{"items": []args{{"job_id": *long.JobID}}}); seen.Items[0].StdoutDelta == "on\n" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	stopped := r.call("stop_job", args{"project": r.project, "job_id": *long.JobID})
	if stopped.IsError {
		t.Errorf("%s", stopped.Output)
	}
	for range 20 {
		if seen = must[run.ObserveOut](r.world, "observe_jobs", args{"items": []args{{"job_id": *long.JobID}}, "wait_secs": 2}); seen.Items[0].Terminal {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if j := seen.Items[0]; j.Status != "cancelled" || j.State != event.Cancelled {
		t.Errorf("%+v", j)
	}
	res := r.call("run_shell", with(s, args{"command": "sleep 2.5", "timeout_secs": 1}))
	if res.Success || !strings.Contains(string(res.Output), `"timed_out":true`) || !strings.Contains(string(res.Output), `"remote_process":"unknown"`) {
		t.Errorf("%s", res.Output)
	}
}

// Of a resource only the name leaves the Runner's own memory: nothing under the data directory,
// in an answer or in what the server says tells of hosts, keys or files, nor of the command.
// Covers: SSH-10, NEG-22, EXE-26
func TestNothingOfAResourceIsAtRest(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	s := r.on(args{"resource": "build"})
	texts := ""
	for _, command := range []string{"echo $((40+2))COMMANDMARK", "exit 3 # COMMANDMARK", "sleep 0.1; kill -9 $PPID # COMMANDMARK"} {
		texts += r.call("run_shell", with(s, args{"command": command})).Text
	}
	r.settings(strings.ReplaceAll(r.resource("build", ""), `/id"`, `/none"`))
	texts += r.call("run_shell", with(s, args{"command": "true"})).Text
	texts += r.call("update_session_context", with(s, args{"execution_context": args{"resource": "other"}})).Text
	texts += string(r.call("read_session_summary", args{"session_id": s["session_id"]}).Output) + r.said.String()
	if !strings.Contains(texts, "42COMMANDMARK") {
		t.Fatal("the command did not run")
	}
	marks := []string{"KEYDIRMARK", "DESCRIPTIONMARK", "127.0.0.1:" + r.host.Port, `"` + r.host.Port + `"`, "PRIVATE KEY"}
	for _, mark := range marks {
		if strings.Contains(texts, mark) {
			t.Errorf("%s is told", mark)
		}
	}
	for file, raw := range r.atRest() {
		for _, mark := range append(marks, "COMMANDMARK") {
			if bytes.Contains(raw, []byte(mark)) {
				t.Errorf("%s is at rest in %s", mark, file)
			}
		}
	}
	core, _ := r.srv.store.Core(s["session_id"].(event.SessionID))
	if core.Context != (event.ExecutionContext{Resource: "other"}) {
		t.Errorf("%+v", core.Context)
	}
}
