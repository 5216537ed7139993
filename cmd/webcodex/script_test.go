package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the program as a person at the terminal does (testdata/script).
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Vars = append(env.Vars, "HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"), raceOptions, "GIT_CONFIG_NOSYSTEM=1",
				"GOCACHE="+goCache(t), "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"repo":    scriptRepo,
			"serve":   scriptServe,
			"pick":    scriptPick,
			"stdio":   scriptStdio,
			"stopall": scriptStopAll,
		},
	})
}

func goCache(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// scriptRepo makes a git repository of the files in a directory: repo DIR.
func scriptRepo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repo DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	for _, a := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "first"}} {
		ts.Check(ts.Exec("git", append([]string{"-C", dir}, a...)...))
	}
}

// scriptServe starts `up --json ARGS` in the background, waits for its ready line and sets
// url, token, project, pid: serve ARGS. At the end of the script the server is stopped, and
// must end with status 0.
func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	exe, err := exec.LookPath("webcodex")
	ts.Check(err)
	env := []string{"HOME=" + ts.Getenv("HOME"), "XDG_STATE_HOME=" + ts.Getenv("XDG_STATE_HOME")}
	for i, a := range args {
		if _, err := os.Stat(ts.MkAbs(a)); err == nil {
			args[i] = ts.MkAbs(a)
		}
	}
	c, err := startChild(context.Background(), exe, env, args...)
	ts.Check(err)
	ts.Setenv("url", c.ready.MCPURL)
	ts.Setenv("token", c.ready.Token)
	ts.Setenv("project", c.ready.Project)
	ts.Setenv("pid", strconv.Itoa(c.ready.PID))
	ts.Defer(func() {
		select {
		case <-c.done:
		default:
			if err := c.stop(); err != nil {
				fmt.Fprintf(os.Stderr, "%v\n", err)
				c.kill()
			}
		}
	})
}

// scriptPick sets a variable to a member of the last command's JSON output: pick VAR PATH,
// PATH is names and indices with dots.
func scriptPick(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pick VAR PATH")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for _, name := range strings.Split(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i, err := strconv.Atoi(name)
			ts.Check(err)
			if i >= len(x) {
				ts.Fatalf("%s: the list has %d items", args[1], len(x))
			}
			v = x[i]
		}
	}
	if v == nil {
		ts.Fatalf("the output has no %s", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// scriptStdio speaks a canned MCP conversation with `webcodex mcp ARGS` and fails where its
// stdout holds anything but JSON-RPC messages: stdio FILE ARGS. The messages go to a file
// named replies.
func scriptStdio(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: stdio FILE [ARGS]")
	}
	in := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	exe, err := exec.LookPath("webcodex")
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, append([]string{"mcp"}, args[1:]...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	cmd.Stdin = strings.NewReader(in)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		ts.Fatalf("webcodex mcp: %v\n%s", err, errOut.String())
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		var m struct {
			Version string `json:"jsonrpc"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Version != "2.0" {
			ts.Fatalf("stdout has a line that is no message: %q", line)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("replies"), out, 0o600))
}

// scriptStopAll ends the background server of the default data directory and waits for it.
func scriptStopAll(ts *testscript.TestScript, neg bool, _ []string) {
	dir := filepath.Join(ts.Getenv("XDG_STATE_HOME"), "webcodex")
	st, err := askStatus(context.Background(), dir)
	if err != nil {
		return
	}
	ts.Check(syscall.Kill(st.PID, syscall.SIGTERM))
	for range 1000 {
		// Where a Runner lives in this very process, orphans become its children and stay until
		// somebody waits for them.
		_, _ = syscall.Wait4(st.PID, nil, syscall.WNOHANG, nil)
		if syscall.Kill(st.PID, 0) != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("the server did not end")
}
