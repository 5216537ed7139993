package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func demoCommand() command {
	return command{
		name: "demo", short: "the whole story on a scratch repository",
		long: `Makes a small repository with a failing test and works on it as a host would: start work,
search, read, test, edit, test. Then the server is killed in the middle of a command and
started again; a second window goes on by the session_id, and the handoff and the replay are
printed. Needs git and go, no network and no host. Exit status 0 only if every step held.`,
		setup: func(fs *flag.FlagSet) action {
			keep := fs.Bool("keep", false, "leave the scratch repository and the data directory, and name them")
			return func(ctx context.Context, s streams, _ []string) error { return runDemo(ctx, s, *keep) }
		},
	}
}

// demo is one run of the story.
type demo struct {
	s    streams
	dir  string // scratch directory of all below
	repo string
	data string

	server  *child
	win     *window
	project string
	session string
	// recorded are the ids of the events that acknowledged calls left in the Session.
	recorded []string
	// interrupted is the command that was running when the server was killed.
	interrupted interruptedCommand
}

// step is one chapter: its title and what must hold. It gives a line for the reader.
type step struct {
	title string
	do    func(context.Context) (string, error)
}

func (d *demo) steps() []step {
	return []step{
		{"a scratch repository with a failing test", d.makeRepository},
		{"webcodex up", d.up},
		{"a window starts work", d.startWork},
		{"it searches", d.search},
		{"it reads", d.read},
		{"it runs the test: fails", d.testFails},
		{"it edits, fenced by the file's hash", d.edit},
		{"it runs the test: passes", d.testPasses},
		{"the server is killed in the middle of a command", d.crash},
		{"webcodex up again", d.up},
		{"nothing acknowledged is lost, nothing ran twice", d.afterCrash},
		{"a second window goes on", d.resume},
		{"the test still passes", d.testPasses},
		{"the handoff brief", d.handoff},
		{"the replay, folded afresh from the log", d.replay},
		{"the server ends on SIGTERM", d.down},
	}
}

func runDemo(ctx context.Context, s streams, keep bool) (err error) {
	for _, tool := range []string{"git", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			return failf(exitFailed, "the demo needs %s on the PATH: install it", tool)
		}
	}
	dir, err := os.MkdirTemp("", "webcodex-demo-")
	if err != nil {
		return failf(exitFailed, "no scratch directory can be made: %v", short(err))
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	d := &demo{s: s, dir: dir, repo: filepath.Join(dir, "calculator"), data: filepath.Join(dir, "data")}
	defer func() { err = errors.Join(err, d.clear(keep)) }()
	steps := d.steps()
	for i, st := range steps {
		fmt.Fprintf(s.out, "%2d/%d  %s\n", i+1, len(steps), st.title)
		began := time.Now()
		note, err := st.do(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return failf(exitFailed, "demo: %s: %v", st.title, err)
		}
		fmt.Fprintf(s.out, "       %s  (%s)\n", clean(note), time.Since(began).Round(time.Millisecond))
	}
	fmt.Fprintln(s.out, "\nEvery step held.")
	return nil
}

// clear ends what the demo started and takes its files away.
func (d *demo) clear(keep bool) error {
	if d.win != nil {
		d.win.close()
	}
	if d.server != nil {
		d.server.kill()
	}
	if keep {
		fmt.Fprintf(d.s.out, "\nThe repository is %s\nThe data directory is %s\nLook around: webcodex replay --data %s %s\n",
			d.repo, d.data, shellQuote(d.data), d.session)
		return nil
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return failf(exitFailed, "the scratch directory could not be removed: %v", short(err))
	}
	return nil
}

// call makes one tool call and wants an answer that is no error.
func (d *demo) call(ctx context.Context, tool string, args map[string]any, out any) (toolResult, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return toolResult{}, err
	}
	res, err := d.win.call(ctx, tool, body)
	if err != nil {
		return res, err
	}
	if res.IsError {
		return res, res.fault()
	}
	var rec struct {
		Event string `json:"session_event_id"`
	}
	if err := json.Unmarshal(res.Output, &rec); err != nil {
		return res, err
	}
	if rec.Event != "" {
		d.recorded = append(d.recorded, rec.Event)
	}
	return res, json.Unmarshal(res.Output, out)
}

// on adds the Project and the Session to a call's arguments.
func (d *demo) on(args map[string]any) map[string]any {
	args["project"], args["session_id"] = d.project, d.session
	return args
}

func (d *demo) makeRepository(ctx context.Context) (string, error) {
	if err := os.MkdirAll(d.repo, 0o700); err != nil {
		return "", short(err)
	}
	for name, text := range demoFiles {
		if err := os.WriteFile(filepath.Join(d.repo, name), []byte(text), 0o600); err != nil {
			return "", short(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "A calculator that cannot add"},
	} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = d.repo
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	// A cold build cache takes longer than a call waits; the story is not about compiling.
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "./...")
	cmd.Dir, cmd.Env = d.repo, append(os.Environ(), offline...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go does not build the scratch module: %w: %s", err, out)
	}
	return d.repo, nil
}

// offline keeps the go command from the network: the scratch module needs nothing from it.
var offline = []string{"GOTOOLCHAIN=local", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off"}

// up starts a server process and connects a fresh window to it, over HTTP as a host would.
func (d *demo) up(ctx context.Context) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if d.server, err = startChild(ctx, self, offline, "--data", d.data, "--listen", "127.0.0.1:0", "--", d.repo); err != nil {
		return "", err
	}
	if d.project != "" && d.project != d.server.ready.Project {
		return "", fmt.Errorf("the Project has another name after the restart: %s", d.server.ready.Project)
	}
	d.project = d.server.ready.Project
	if d.win, err = dialWindow(ctx, d.server.ready.MCPURL, d.server.ready.Token); err != nil {
		return "", err
	}
	return fmt.Sprintf("ready in %s, pid %d, %s", d.server.took.Round(time.Millisecond), d.server.ready.PID, d.project), nil
}

func (d *demo) down(context.Context) (string, error) {
	d.win.close()
	server := d.server
	d.win, d.server = nil, nil
	return "exit status 0", server.stop()
}

// demoFiles is the scratch repository. Its module needs no download.
var demoFiles = map[string]string{
	"go.mod":    "module calculator\n\ngo 1.21\n",
	"README.md": "# Calculator\n\nIt adds.\n",
	"calc.go": `// Package calculator adds.
package calculator

// Add is the sum of its arguments.
func Add(numbers ...int) int {
	sum := 0
	for _, n := range numbers {
		sum -= n
	}
	return sum
}
`,
	"calc_test.go": `package calculator

import "testing"

func TestAdd(t *testing.T) {
	if got := Add(1, 2, 3); got != 6 {
		t.Errorf("Add(1, 2, 3) = %d, want 6", got)
	}
}

func TestAddNothing(t *testing.T) {
	if got := Add(); got != 0 {
		t.Errorf("Add() = %d, want 0", got)
	}
}
`,
}
