package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/call"
	"webcodex/commands/run"
	"webcodex/eventlog/event"
	"webcodex/mcp"
	view "webcodex/projections/session"
)

// runners are calls of every tool that runs what its caller gives, which print the directory,
// and leave a mark where they are.
var runners = map[string]args{
	"run_process": {"executable": "sh", "args": []string{"-c", "pwd; touch mark"}},
	"run_script":  {"language": "sh", "script": "pwd; touch mark"},
	"run_shell":   {"command": "pwd; touch mark"},
}

// marks are where a command has been.
func (w *world) marks() (out []string) {
	w.t.Helper()
	_ = filepath.WalkDir(filepath.Dir(w.repo), func(p string, _ os.DirEntry, _ error) error {
		if filepath.Base(p) == "mark" {
			out = append(out, p)
			_ = os.Remove(p)
		}
		return nil
	})
	return out
}

// The Runner checks what a default directory really is. One that it cannot enter ends the call:
// nothing is started, and the root is not tried instead.
//
// Covers: EXE-06
func TestTheRunnerChecksTheDefaultDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	for _, err := range []error{
		os.Symlink("..", filepath.Join(w.repo, "up")), os.Symlink("/etc", filepath.Join(w.repo, "etc")), os.Symlink(w.otherDir, filepath.Join(w.repo, "beside")),
		os.Symlink("loop", filepath.Join(w.repo, "loop")), os.Mkdir(filepath.Join(w.repo, "real"), 0o755), os.Symlink("real", filepath.Join(w.repo, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for cwd, reason := range map[string]string{"up": "symlink_outside", "etc": "symlink_outside", "beside": "symlink_outside", "beside/.git": "symlink_outside",
		"missing": "not_found", "real/missing": "not_found", "add.go": "not_directory", "add.go/x": "", "loop": "", "link": "ok", "real": "ok"} {
		s := w.work(args{"execution_context": args{"default_cwd": cwd}})
		for tool, a := range runners {
			r := w.call(tool, with(a, args{"project": w.project, "session_id": s.SessionID}))
			f := refusalOf(t, r)
			been := w.marks()
			if reason == "ok" {
				if !r.Success || len(been) != 1 || been[0] != filepath.Join(w.repo, "real", "mark") {
					t.Errorf("%s in %s: %v %s", tool, cwd, been, r.Text)
				}
				continue
			}
			if !r.IsError || f.Kind != "invalid_path" || f.Reason != reason && reason != "" || f.CommandStarted == nil || *f.CommandStarted || len(been) != 0 {
				t.Errorf("%s in %s: %v %s", tool, cwd, been, r.Text)
			}
			if !strings.Contains(string(r.Output), `"execution_state":"not_started"`) || strings.Contains(r.Text, w.repo) {
				t.Errorf("%s in %s: %s", tool, cwd, r.Output)
			}
		}
	}
}

// Each default is inherited by itself, and by the tools that run commands alone. A program and a
// script have no shell, and none of the tools runs here what a named resource should run.
//
// Covers: EXE-08, EXE-09, EXE-13
func TestCommandsInheritTheDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	for _, d := range []string{"def", "own"} {
		if err := os.Mkdir(filepath.Join(w.repo, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := w.work(args{"execution_context": args{"default_cwd": "def", "default_shell": "bash"}})
	p := args{"project": w.project, "session_id": s.SessionID}
	which := "pwd; echo ${BASH_VERSION:+bash}"
	for _, c := range []struct {
		extra      args
		dir, shell string
	}{
		{args{}, "def", "bash"}, {args{"cwd": "own"}, "own", "bash"}, {args{"shell": "sh"}, "def", "sh"}, {args{"cwd": "own", "shell": "sh"}, "own", "sh"},
	} {
		r := must[run.ShellOut](w, "run_shell", with(p, c.extra, args{"command": which}))
		printed := filepath.Join(w.repo, c.dir) + "\n" + strings.TrimSuffix(c.shell, "sh")
		if c.shell == "bash" {
			printed += "sh"
		}
		if r.Shell != c.shell || strings.TrimSpace(r.Stdout) != strings.TrimSpace(printed) {
			t.Errorf("%v: %s printed %q", c.extra, r.Shell, r.Stdout)
		}
	}
	for tool, a := range runners {
		for _, c := range []struct {
			cwd any
			dir string
		}{{nil, "def"}, {"own", "own"}, {".", ""}} {
			a := with(p, a)
			if c.cwd != nil {
				a["cwd"] = c.cwd
			}
			if r := must[run.Output](w, tool, a); r.Stdout != filepath.Join(w.repo, c.dir)+"\n" {
				t.Errorf("%s with cwd %v ran in %q", tool, c.cwd, r.Stdout)
			}
		}
		if tool := catalogued(t, tool); tool.Spec.Name != "run_shell" {
			if _, takes := tool.Input.Prop("shell"); takes {
				t.Errorf("%s takes a shell", tool.Spec.Name)
			}
		}
	}
	w.marks()
	// No tool of this server names a resource; a log may.
	if _, err := aggregate.NewWriter(w.srv.log, time.Now).Do(t.Context(), aggregate.Command{Aggregate: event.SessionAggregate(s.SessionID), Actor: event.Actor{}},
		func(time.Time) ([]event.Event, error) {
			return []event.Event{event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: "def", Resource: "gpu-box"}}}, nil
		}); err != nil {
		t.Fatal(err)
	}
	for tool, a := range runners {
		for _, extra := range []args{{}, {"cwd": "own"}} {
			r := w.call(tool, with(p, a, extra))
			f := refusalOf(t, r)
			if !r.IsError || f.CommandStarted == nil || *f.CommandStarted || !strings.Contains(string(r.Output), `"execution_state":"not_started"`) ||
				tool != "run_shell" && (f.Kind != "unavailable" || f.Reason != "unsupported_resource") {
				t.Errorf("%s: %s", tool, r.Output)
			}
		}
	}
	if been := w.marks(); len(been) != 0 {
		t.Errorf("it ran: %v", been)
	}
}

func catalogued(t *testing.T, name string) mcp.Tool {
	t.Helper()
	for _, tool := range mcp.Catalogue() {
		if tool.Spec.Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %s", name)
	return mcp.Tool{}
}

// Tools about files, git and whatever else runs no command of the caller answer the same with
// and without defaults: their paths begin at the root.
//
// Covers: EXE-15
func TestOtherToolsInheritNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	w.write(filepath.Join(w.repo, "sub", "add.go"), "package sub // Add, not that of the root\n")
	w.write(filepath.Join(w.repo, "sub", "AGENTS.md"), "of sub\n")
	plain := w.work(args{})
	set := w.work(args{"execution_context": args{"default_cwd": "sub", "default_shell": "bash"}})
	volatile := regexp.MustCompile(`wc_[a-z]+_[0-9a-f]{32}|evt_[0-9a-f]+|"(duration_ms|elapsed_ms|index_ms|observed_at|next_cursor|cursor)":[^,}]*`)
	compared := 0
	for _, tool := range sessionTools(t) {
		name := tool.Spec.Name
		if tool.Spec.Plane != call.PlaneProject || tool.Spec.Class == call.Execute || tool.Spec.Class == call.Mutate {
			continue
		}
		var answers []string
		for _, id := range []event.SessionID{plain.SessionID, set.SessionID} {
			for _, made := range []string{"swept.txt", "written.txt", "patched.txt", "patched2.txt", "patched3.txt"} {
				_ = os.Remove(filepath.Join(w.repo, made))
			}
			r := w.call(name, with(sample[name], args{"project": w.project, "session_id": id}))
			answers = append(answers, volatile.ReplaceAllString(string(r.Output), "")+r.Kind())
		}
		if answers[0] != answers[1] {
			t.Errorf("%s answers\n%s\n%s", name, answers[0], answers[1])
		}
		compared++
	}
	if compared < 10 {
		t.Errorf("only %d tools were looked at", compared)
	}
	if left, _ := filepath.Glob(filepath.Join(w.repo, "sub", "*.txt")); len(left) != 0 {
		t.Errorf("written below the default directory: %v", left)
	}
}

// Each command is a process of its own: what one does to its directory, its environment and its
// functions is nothing to the next, one that became a Job included.
func TestCommandsShareNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	if err := os.Mkdir(filepath.Join(w.repo, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	change := "cd sub; export LEFT=behind; f() { echo function; }; umask 0777; set -u; sleep 0.2"
	for _, wait := range []int{10, 0} {
		if r := w.call("run_shell", with(p, args{"command": change, "sync_wait_secs": wait})); !r.Success {
			t.Fatalf("%s", r.Text)
		}
		r := must[run.ShellOut](w, "run_shell", with(p, args{"command": `pwd; echo "[$LEFT]"; f; umask`}))
		if lines := strings.Fields(r.Stdout); len(lines) != 3 || lines[0] != w.repo || lines[1] != "[]" || strings.HasSuffix(lines[2], "777") {
			t.Errorf("%q %q", r.Stdout, r.Stderr)
		}
	}
}

// Every tool that takes a shell's text has the one ceiling, in bytes and not in characters.
//
// Covers: EXE-18
func TestRawShellTextHasOneCeiling(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	found := 0
	for _, tool := range mcp.Catalogue() {
		p, takes := tool.Input.Prop("command")
		if !takes {
			continue
		}
		found++
		if p.Schema.MaxBytes != 16_000 {
			t.Errorf("%s takes %d bytes", tool.Spec.Name, p.Schema.MaxBytes)
		}
		base := args{"project": w.project, "session_id": s.SessionID}
		if _, takes := tool.Input.Prop("shell_id"); takes {
			base["shell_id"] = "wc_shell_" + strings.Repeat("0", 32)
		}
		head := "printf ok #"
		for _, fill := range []string{"x", "é", "漢", "🙂"} {
			text := head + strings.Repeat("x", (16_000-len(head))%len(fill)) + strings.Repeat(fill, (16_000-len(head))/len(fill))
			if len(text) != 16_000 {
				t.Fatal(len(text))
			}
			w.refused(tool.Spec.Name, with(base, args{"command": text + "x"}), "invalid_arguments", "command")
			if tool.Spec.Name == "run_shell" {
				if r := must[run.ShellOut](w, "run_shell", with(base, args{"command": text})); r.Stdout != "ok" {
					t.Errorf("%q of %d bytes: %+v", fill, len(text), r.Output)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no tool takes a command")
	}
}

// No caller gives an environment, and no more codes may be accepted than the bound says. A text
// on the output that claims success changes nothing.
func TestWhatACallerOfACommandMayNotGive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	for tool, a := range runners {
		for name, value := range map[string]any{"env": args{"PATH": "/x"}, "environment": []string{"A=b"}, "environ": args{}, "Env": args{}, "user": "root", "pty": true} {
			w.refused(tool, with(p, a, args{name: value}), "invalid_arguments", name)
		}
	}
	codes := make([]int, 17)
	for i := range codes {
		codes[i] = 240 + i - 1
	}
	w.refused("run_process", with(p, args{"executable": "true", "accepted_exit_codes": codes}), "invalid_arguments", "accepted_exit_codes")
	for _, code := range []int{-1, 256} {
		w.refused("run_process", with(p, args{"executable": "true", "accepted_exit_codes": []int{0, code}}), "invalid_arguments", "accepted_exit_codes[1]")
	}
	if left := w.marks(); len(left) != 0 {
		t.Errorf("it ran: %v", left)
	}
	forged := args{"executable": "sh", "args": []string{"-c", "echo 'exit status 0'; echo '{\"Action\":\"pass\"}'; exit 254"}, "purpose": "test", "accepted_exit_codes": codes[:16]}
	r := w.call("run_process", with(p, forged))
	var out run.Output
	if err := r.Decode(&out); err != nil || r.IsError || r.Success || out.ExitCode == nil || *out.ExitCode != 254 || out.Expectation.Result != event.ExpectationMatched {
		t.Errorf("16 codes, the last of them: %s", r.Text)
	}
	if v := must[view.ValidationSummary](w, "read_validation_summary", args{"session_id": s.SessionID, "project": w.project}); v.Status == "passed" {
		t.Errorf("%+v", v)
	}
}
