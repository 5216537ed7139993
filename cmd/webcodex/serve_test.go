package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
)

// scratch is an empty repository and a data directory beside it.
func scratch(t *testing.T) (repo, data string) {
	t.Helper()
	dir := t.TempDir()
	repo = filepath.Join(dir, "repo")
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	return repo, filepath.Join(dir, "data")
}

func up1(t *testing.T, repo, data string, args ...string) *child {
	t.Helper()
	c, err := startChild(t.Context(), program(t), nil, append(args, "--data", data, "--", repo)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func begin(t *testing.T, c *child) (*window, event.SessionID) {
	t.Helper()
	w, err := dialWindow(t.Context(), c.ready.MCPURL, c.ready.Token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	var out struct {
		SessionID event.SessionID `json:"session_id"`
	}
	res, err := w.call(t.Context(), "work_on_project", encode(map[string]any{"project": c.ready.Project, "instruction": "test"}))
	if err == nil {
		err = decode(res, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w, out.SessionID
}

// A signal lets the call in flight come to its end: it is answered, recorded, and the process
// ends with status 0.
func TestSignalLetsCallsEnd(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	w, id := begin(t, c)
	answered := make(chan toolResult, 1)
	go func() {
		res, err := w.call(context.Background(), "run_shell", encode(map[string]any{"project": c.ready.Project, "session_id": id,
			"command": "echo begun > ../marker; sleep 1; echo ended"}))
		if err != nil {
			t.Errorf("the call was not answered: %v", err)
		}
		answered <- res
	}()
	if _, err := awaitMarker(t.Context(), filepath.Join(filepath.Dir(repo), "marker")); err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if res := <-answered; !res.Success || !strings.Contains(string(res.Output), "ended") {
		t.Errorf("the call's answer is %s", res.Output)
	}
	lines, err := replayLines(t.Context(), data, id)
	if err != nil {
		t.Fatal(err)
	}
	last := lines[len(lines)-1].Events
	if got := last[len(last)-1]; got.Type != "session.tool_call_finished" || !strings.Contains(got.Summary, "run_shell succeeded") {
		t.Errorf("the Session ends with %+v", got)
	}
}

// A server that nobody uses ends by itself, with status 0; one with a window attached stays.
func TestIdleExit(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	const idle = 2 * time.Second
	c := up1(t, repo, data, "--listen", "127.0.0.1:0", "--idle-exit", idle.String())
	link := &hostLink{dir: data, root: repo, kept: func() {}}
	if err := link.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.done:
		t.Fatal("the server ended although a window is attached")
	case <-time.After(3 * idle):
	}
	link.kept()
	select {
	case <-c.done:
		if c.err != nil {
			t.Errorf("the server ended with %v", c.err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the server did not end")
	}
}

// Windows that start at the same moment without a server bring up one, and all use it.
func TestRacingWindowsShareOneServer(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	const windows = 4
	var wg sync.WaitGroup
	for range windows {
		wg.Go(func() {
			in, say := io.Pipe()
			defer say.Close()
			cmd := exec.Command(program(t), "mcp", "--data", data, "--", repo)
			cmd.Stdin = in
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Error(err)
				return
			}
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			defer cmd.Process.Kill()
			go func() {
				_, _ = io.WriteString(say, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
			}()
			var m struct {
				ID     int             `json:"id"`
				Result json.RawMessage `json:"result"`
			}
			if err := json.NewDecoder(out).Decode(&m); err != nil || m.ID != 1 || len(m.Result) == 0 {
				t.Errorf("no answer to initialize: %v; %s", err, errOut.String())
			}
			say.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("webcodex mcp ended with %v: %s", err, errOut.String())
			}
		})
	}
	wg.Wait()
	st, err := askStatus(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(st.PID, syscall.SIGKILL) })
	if len(st.Projects) != 1 {
		t.Errorf("the server serves %v", st.Projects)
	}
	if err := syscall.Kill(st.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !gone(st.PID) {
		t.Error("the server did not end")
	}
}

// Two that start at once on one data directory: one serves, the other joins it, ends with
// status 0, and both are told the same.
func TestRacingUps(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	var wg sync.WaitGroup
	ups := make([]*child, 3)
	for i := range ups {
		wg.Go(func() {
			c, err := startChild(context.Background(), program(t), nil, "--data", data, "--listen", "127.0.0.1:0", "--", repo)
			if err != nil {
				t.Error(err)
				return
			}
			ups[i] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	serving := 0
	for _, c := range ups {
		t.Cleanup(c.kill)
		if c.ready.PID != ups[0].ready.PID || c.ready.MCPURL != ups[0].ready.MCPURL || c.ready.Project != ups[0].ready.Project {
			t.Errorf("%+v and %+v", c.ready, ups[0].ready)
		}
		if c.ready.PID == c.cmd.Process.Pid {
			serving++
			continue
		}
		<-c.done
		if c.err != nil {
			t.Errorf("the one that joined ended with %v", c.err)
		}
	}
	if serving != 1 {
		t.Errorf("%d of them serve", serving)
	}
}

// Whoever sits on our port gets nothing: the server refuses to start, names the holder, and
// no other port is taken silently.
func TestSquatterGetsNothing(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data)
	addr := strings.TrimSuffix(strings.TrimPrefix(c.ready.MCPURL, "http://"), "/mcp")
	token := c.ready.Token
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan []byte, 1)
	go func() {
		var all bytes.Buffer
		for {
			conn, err := l.Accept()
			if err != nil {
				heard <- all.Bytes()
				return
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = io.Copy(&all, conn)
			conn.Close()
		}
	}()
	var out, errOut bytes.Buffer
	cmd := exec.Command(program(t), "up", "--json", "--data", data, "--", repo)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	_ = l.Close()
	if code := cmd.ProcessState.ExitCode(); err == nil || code != exitFailed {
		t.Errorf("exit status %d, want %d", code, exitFailed)
	}
	if out.Len() != 0 || !strings.Contains(errOut.String(), "is taken by") {
		t.Errorf("stdout %q, stderr %q", out.String(), errOut.String())
	}
	if got := <-heard; bytes.Contains(got, []byte(token)) || len(got) != 0 {
		t.Errorf("the squatter heard %q", got)
	}
	// With the port free again it is the same address and the same token.
	again := up1(t, repo, data)
	if again.ready.MCPURL != c.ready.MCPURL || again.ready.Token != token {
		t.Errorf("after the restart %s, another token: %v", again.ready.MCPURL, again.ready.Token != token)
	}
}

// A call whose server dies in the middle is neither refused nor done for all its caller knows:
// exit status 3, and where to look.
func TestCallWhoseServerDies(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	var errOut bytes.Buffer
	cmd := exec.Command(program(t), "call", "--data", data, "run_shell",
		string(encode(map[string]any{"project": c.ready.Project, "command": "echo begun > ../marker; sleep 5"})))
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := awaitMarker(t.Context(), filepath.Join(filepath.Dir(repo), "marker")); err != nil {
		t.Fatal(err)
	}
	c.kill()
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitNoServer || !strings.Contains(errOut.String(), "the connection broke; the call may have run") {
		t.Errorf("exit status %d (%v): %s", code, err, errOut.String())
	}
}

func TestClosedText(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]call.Recovered{
		"": {}, "1 call": {Calls: 1}, "2 Jobs": {Jobs: 2}, "2 calls and 1 Job": {Calls: 2, Jobs: 1},
	} {
		if got := closedText(n); got != want {
			t.Errorf("%+v: %q, want %q", n, got, want)
		}
	}
}
