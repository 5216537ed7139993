package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp/client"
)

// world is one server of this process with two repositories and an MCP client over HTTP.
type world struct {
	t        testing.TB
	dir      string // data directory
	repo     string
	srv      *server
	client   *client.Client
	project  string
	other    string // the second Project
	otherDir string
	said     *strings.Builder
}

type args = map[string]any

// newWorld starts everything the way up does, but the process.
func newWorld(t testing.TB, durability string, change ...func(*Config)) *world {
	t.Helper()
	return openWorld(t, t.TempDir(), func(f *upFlags) {
		f.cfg.Durability = eventlog.Durability(durability)
		for _, c := range change {
			c(&f.cfg.Config)
		}
	})
}

// openWorld is newWorld in a directory that may have been one before.
func openWorld(t testing.TB, base string, change func(*upFlags)) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(base, "data"), repo: filepath.Join(base, "alpha"), otherDir: filepath.Join(base, "beta"), said: &strings.Builder{}}
	if err := os.Mkdir(w.dir, 0o700); err == nil {
		w.git(w.repo)
		w.git(w.otherDir)
	} else if !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	s := streams{in: strings.NewReader(""), out: io.Discard, err: w.said}
	f := upFlags{data: w.dir, asJSON: true, cfg: effective{Config: DefaultConfig()}}
	f.cfg.Listen = "127.0.0.1:0"
	change(&f)
	srv, err := openServer(context.Background(), s, f, w.dir, w.repo)
	if err != nil {
		t.Fatal(err)
	}
	w.srv = srv
	t.Cleanup(func() {
		srv.drain()
		if err := srv.close(); err != nil {
			t.Error(err)
		}
	})
	if w.project, err = srv.addProject(context.Background(), w.repo); err != nil {
		t.Fatal(err)
	}
	if w.other, err = srv.addProject(context.Background(), w.otherDir); err != nil {
		t.Fatal(err)
	}
	if _, err := srv.kernel.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := srv.listen(f.cfg.Listen, ""); err != nil {
		t.Fatal(err)
	}
	srv.answer()
	w.client = w.connect("")
	return w
}

func (w *world) connect(version string) *client.Client {
	w.t.Helper()
	c, err := client.Connect(context.Background(), client.Options{URL: "http://" + w.srv.tcpListener.Addr().String() + "/mcp",
		Token: w.srv.access.Token(), Version: version})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// git makes a repository with one Go module, a passing test and one commit.
func (w *world) git(dir string) {
	w.t.Helper()
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.24\n", "add.go": "package sample\n\nfunc Add(a, b int) int { return a + b }\n",
		"add_test.go": "package sample\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n",
		"AGENTS.md":   "INSTRUCTION_BODY_MARKER\n",
	} {
		w.write(filepath.Join(dir, name), text)
	}
	for _, a := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, a...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("git %v: %v: %s", a, err, out)
		}
	}
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// call makes a call over HTTP.
func (w *world) call(tool string, a args) client.Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := w.client.CallTool(ctx, tool, a)
	if err != nil {
		w.t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// must makes a call that works and decodes its output.
func must[Out any](w *world, tool string, a args) Out {
	w.t.Helper()
	r := w.call(tool, a)
	var out Out
	if r.IsError {
		w.t.Fatalf("%s: %s", tool, r.Text)
	}
	if err := r.Decode(&out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) work(a args) session.WorkOut {
	w.t.Helper()
	if a["instruction"] == nil {
		a["instruction"] = "do it"
	}
	if a["project"] == nil && a["session_id"] == nil {
		a["project"] = w.project
	}
	return must[session.WorkOut](w, "work_on_project", a)
}

// refusal is what every refusal says.
type refusal struct {
	Kind           string `json:"error_kind"`
	Field          string `json:"field"`
	Reason         string `json:"reason_code"`
	StateChanged   *bool  `json:"state_changed"`
	CommandStarted *bool  `json:"command_started"`
}

func refusalOf(t testing.TB, r client.Result) refusal {
	t.Helper()
	var f refusal
	if err := json.Unmarshal(r.Output, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// refused makes a call that has to be refused before anything is written or started.
func (w *world) refused(tool string, a args, kind, field string) {
	w.t.Helper()
	before := w.srv.log.Status().Seq
	r := w.call(tool, a)
	f := refusalOf(w.t, r)
	if !r.IsError || f.Kind != kind || field != "" && f.Field != field {
		w.t.Errorf("%s: %s/%s, want %s/%s: %s", tool, f.Kind, f.Field, kind, field, r.Text)
	}
	if f.StateChanged == nil || *f.StateChanged || f.CommandStarted == nil || *f.CommandStarted {
		w.t.Errorf("%s: the refusal does not say that nothing happened: %s", tool, r.Output)
	}
	if after := w.srv.log.Status().Seq; after != before {
		w.t.Errorf("%s: the refusal wrote %d commits", tool, after-before)
	}
}

// seq counts tail events of a Session.
func (w *world) observed(id event.SessionID) uint64 {
	core, _ := w.srv.store.Core(id)
	return core.Observed
}
