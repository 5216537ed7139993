package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/eventlog/event"
	"webcodex/mcp/client"
	"webcodex/runner/wire"
)

// remote is a server alone and a Runner, each a process of its own, with a wire between them that
// can be cut.
type remote struct {
	t                  *testing.T
	dir, data, repo    string
	runnerData         string
	server, runner     *child
	wire               *cable
	issued             access.RunnerIssued
	project            string
	listen, at         string // where hosts and Runners find the server
	mcp                *client.Client
	durability, scheme string
}

// cable is a TCP relay that can be cut and mended.
type cable struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func newCable(t *testing.T) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{l: l, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = l.Close()
		c.set(true)
	})
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go c.relay(in)
		}
	}()
	return c
}

func (c *cable) relay(in net.Conn) {
	defer in.Close()
	c.mu.Lock()
	to, cut := c.to, c.cut
	c.mu.Unlock()
	if cut {
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	c.mu.Lock()
	cut = c.cut
	c.conns[in], c.conns[out] = true, true
	c.mu.Unlock()
	if cut {
		return
	}
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
		_ = in.Close()
	}()
	_, _ = io.Copy(in, out)
	c.mu.Lock()
	delete(c.conns, in)
	delete(c.conns, out)
	c.mu.Unlock()
}

// set cuts the cable, or mends it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for conn := range c.conns {
			_ = conn.Close()
		}
		c.conns = map[net.Conn]bool{}
	}
}

func (c *cable) lead(to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = to
}

// newRemote starts a server alone and enrols and starts a Runner for one repository.
func newRemote(t *testing.T, scheme string) *remote {
	t.Helper()
	r := &remote{t: t, dir: t.TempDir(), wire: newCable(t), scheme: scheme, durability: "process", listen: "127.0.0.1:0", at: "127.0.0.1:0"}
	// A path with a space and a quote is a path like any other.
	r.repo, r.data, r.runnerData = filepath.Join(r.dir, "it's a repo"), filepath.Join(r.dir, "data"), filepath.Join(r.dir, "runner data")
	if out, err := exec.Command("git", "init", "-q", r.repo).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	r.startServer()
	r.issued = webcodexJSON[access.RunnerIssued](t, "token", "create", "--kind", "runner", "--name", "box", "--data", r.data, "--json")
	for range 2 { // its answer may be lost: the same Runner may do it again
		r.enrol(r.runnerData, r.issued.Code)
	}
	r.startRunner()
	return r
}

// startServer starts the server; hosts and Runners find it where it was.
func (r *remote) startServer() {
	r.t.Helper()
	args := []string{"serve", "--json", "--data", r.data, "--listen", r.listen, "--durability", r.durability, "--runner-listen", r.at}
	if r.scheme == "ws" {
		args[len(args)-2] = "--runner-ws-listen"
	}
	c, err := startProgram(r.t.Context(), program(r.t), nil, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.kill)
	r.server, r.listen = c, strings.TrimSuffix(strings.TrimPrefix(c.ready.MCPURL, "http://"), "/mcp")
	_, r.at, _ = strings.Cut(c.ready.Runners[0], "://")
	r.wire.lead(r.at)
	if r.mcp, err = client.Connect(r.t.Context(), client.Options{URL: c.ready.MCPURL, Token: c.ready.Token}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *remote) url() string { return r.scheme + "://" + r.wire.l.Addr().String() }

// enrol runs the Runner's enrolment, which has to succeed.
func (r *remote) enrol(data, code string) {
	r.t.Helper()
	if out, exit := r.program("runner", "--data", data, "--enroll", code, "--server", r.url()); exit != exitOK {
		r.t.Fatalf("exit status %d: %s", exit, out)
	}
}

func (r *remote) program(args ...string) (said string, code int) {
	r.t.Helper()
	var out, err strings.Builder
	code = runProgram(r.t.Context(), args, strings.NewReader(""), &out, &err)
	return out.String() + err.String(), code
}

func (r *remote) startRunner() {
	r.t.Helper()
	c, err := startProgram(r.t.Context(), program(r.t), nil, "runner", "--json", "--data", r.runnerData, "--durability", r.durability, r.repo)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.kill)
	var ready runnerReady
	if err := json.Unmarshal(c.line, &ready); err != nil || len(ready.Projects) != 1 {
		r.t.Fatalf("%s: %v", c.line, err)
	}
	r.runner, r.project = c, ready.Projects[0]
}

func (r *remote) call(tool string, a args) client.Result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	res, err := r.mcp.CallTool(ctx, tool, a)
	if err != nil {
		r.t.Fatalf("%s: %v", tool, err)
	}
	return res
}

// marks counts what commands have left beside the repository.
func (r *remote) marks(mark string) int {
	b, _ := os.ReadFile(filepath.Join(r.dir, "marks"))
	return strings.Count(string(b), mark+"\n")
}

// Server and Runner in processes of their own, over TLS and over WebSocket: a Project is served,
// read, changed and run in; a code is good once; a second instance and a stranger stay out in
// words; what is revoked is cut at once.
func TestRemoteRunner(t *testing.T) {
	for _, scheme := range []string{"tls", "ws"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t, scheme)
			begun := r.call("work_on_project", args{"project": r.project, "instruction": "go"})
			var session struct {
				ID event.SessionID `json:"session_id"`
			}
			if err := begun.Decode(&session); err != nil || begun.IsError {
				t.Fatalf("%v %s", err, begun.Text)
			}
			ran := r.call("run_shell", args{"project": r.project, "session_id": session.ID, "command": "echo here > file && cat file && echo m1 >> ../marks"})
			if ran.IsError || !strings.Contains(ran.Text, "here") || r.marks("m1") != 1 {
				t.Errorf("%s", ran.Text)
			}
			if read := r.call("read_files", args{"project": r.project, "items": []args{{"path": "file"}}}); read.IsError || !strings.Contains(read.Text, "here") {
				t.Errorf("%s", read.Text)
			}
			info, err := os.Stat(filepath.Join(r.runnerData, enrolmentFile))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the Runner's secret: %v %v", info.Mode(), err)
			}
			r.hosts()
			r.strangers()
			r.revoked()
		})
	}
}

// hosts attaches as a host on the server's machine does, which has no Project there.
func (r *remote) hosts() {
	r.t.Helper()
	var out, said strings.Builder
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	if code := runProgram(r.t.Context(), []string{"mcp", "--data", r.data, r.repo}, strings.NewReader(in), &out, &said); code != exitOK || !strings.Contains(out.String(), "serverInfo") {
		r.t.Errorf("webcodex mcp: exit status %d: %s%s", code, out.String(), said.String())
	}
	if text, code := r.program("up", "--data", r.data, r.repo); code == exitOK || !strings.Contains(text, "no Runner of its own") {
		r.t.Errorf("webcodex up beside it: exit status %d: %s", code, text)
	}
	for _, asks := range []string{"status", "doctor", "sessions"} {
		if text, code := r.program(asks, "--data", r.data); code != exitOK || asks == "status" && !strings.Contains(text, r.project) {
			r.t.Errorf("webcodex %s: exit status %d: %s", asks, code, text)
		}
	}
	if text, code := r.program("serve", "--data", r.data); code == exitOK || !strings.Contains(text, "runs on this data directory already") {
		r.t.Errorf("a second server: exit status %d: %s", code, text)
	}
}

// strangers tries to come in with what is good for nothing.
func (r *remote) strangers() {
	t := r.t
	other := filepath.Join(r.dir, "other")
	half := r.issued.Code[:len(r.issued.Code)-9]
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"spent":     {[]string{"--enroll", r.issued.Code, "--server", r.url()}, "enrolled with this code already"},
		"half":      {[]string{"--enroll", half, "--server", r.url()}, "part of it is missing"},
		"open":      {[]string{"--enroll", r.issued.Code, "--server", "nats://192.0.2.1:4222"}, "loopback"},
		"no server": {[]string{"--enroll", r.issued.Code, "--server", "http://192.0.2.1"}, "tls, wss"},
		"none":      {nil, "enrolled nowhere"},
	} {
		out, code := r.program(append([]string{"runner", "--data", other}, c.args...)...)
		if code == exitOK || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit status %d: %s", name, code, out)
		}
	}
	// The same enrolment in another place is a second instance.
	second := filepath.Join(r.dir, "second")
	if err := os.Mkdir(second, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(r.runnerData, enrolmentFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(second, enrolmentFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	r.says(second, "another Runner with this client id")
	if out, code := r.program("runner", "--data", r.runnerData); code == exitOK || !strings.Contains(out, "another process") {
		t.Errorf("two processes in one data directory: %s", out)
	}
	// One that trusts another server does nothing for this one.
	var e enrolment
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	code, err := wire.ParseCode(r.issued.Code)
	if err != nil {
		t.Fatal(err)
	}
	code.Seed[0] ^= 1
	if out, exit := r.program("runner", "--data", other, "--enroll", code.String(), "--server", r.url()); exit == exitOK || !strings.Contains(out, "knows no such code") {
		t.Errorf("a forged code: %s", out)
	}
	code, _ = wire.ParseCode(r.issued.Code)
	code.Server[0] ^= 1
	if out, exit := r.program("runner", "--data", other, "--enroll", code.String(), "--server", r.url()); exit == exitOK || !strings.Contains(out, "not the server that made this code") {
		t.Errorf("a code of another server: %s", out)
	}
	if r.scheme == "tls" {
		e.Pin[0] ^= 1
		if err := e.save(second, enrolmentFile); err != nil {
			t.Fatal(err)
		}
		r.says(second, "does not have the certificate that was expected")
		e.Pin[0] ^= 1
	}
	e.Server[0] ^= 1
	if err := e.save(second, enrolmentFile); err != nil {
		t.Fatal(err)
	}
	r.says(second, "not signed with the key")
}

// says starts a Runner that must not come in and waits for what it says.
func (r *remote) says(data, want string) {
	r.t.Helper()
	cmd := exec.Command(program(r.t), "runner", "--json", "--data", data, r.repo)
	said := &lastBytes{}
	cmd.Stderr, cmd.Stdout = said, said
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(said.String(), want); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Errorf("it does not say %q: %s", want, said)
			return
		}
	}
	if strings.Contains(said.String(), `"ready":true`) {
		r.t.Errorf("it came in: %s", said)
	}
}

// revoked ends the Runner's credential and waits until it is out.
func (r *remote) revoked() {
	t := r.t
	list := webcodexJSON[access.RunnerList](t, "token", "list", "--data", r.data, "--json")
	if len(list.Runners) != 1 || list.Runners[0].Status != "active" || list.Runners[0].ID != r.issued.ID {
		t.Errorf("%+v", list)
	}
	webcodexJSON[access.RunnerView](t, "token", "revoke", string(r.issued.ID), "--data", r.data, "--json")
	res := r.call("run_shell", args{"project": r.project, "command": "echo m2 >> ../marks"})
	if !res.IsError || refusalOf(t, res).Kind != "runner_unavailable" || r.marks("m2") != 0 {
		t.Errorf("after the revocation: %s", res.Text)
	}
	for end := time.Now().Add(20 * time.Second); !strings.Contains(r.runner.said.String(), "was revoked or replaced"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the Runner does not know: %s", r.runner.said)
		}
	}
	if out, code := r.program("runner", "--data", filepath.Join(r.dir, "other"), "--enroll", r.issued.Code, "--server", r.url()); code == exitOK || !strings.Contains(out, "revoked") {
		t.Errorf("a revoked code: %s", out)
	}
	if err := r.runner.stop(); err != nil {
		t.Error(err)
	}
}

// The link is cut while a command runs, in a long run for longer than the Runner's lease: nothing
// is cancelled, and the same Job ends with the right result, once.
func TestRemoteRunnerOutlivesACut(t *testing.T) {
	t.Parallel()
	cut, length := 2*time.Second, 4
	if os.Getenv("WEBCODEX_SOAK") != "" {
		cut, length = 30*time.Second, 60
	}
	r := newRemote(t, "tls")
	begun := r.call("work_on_project", args{"project": r.project, "instruction": "go"})
	var session struct {
		ID event.SessionID `json:"session_id"`
	}
	if err := begun.Decode(&session); err != nil || begun.IsError {
		t.Fatalf("%v %s", err, begun.Text)
	}
	go func() {
		time.Sleep(time.Second)
		r.wire.set(true)
		time.Sleep(cut)
		r.wire.set(false)
	}()
	ran := r.call("run_job", args{"project": r.project, "session_id": session.ID, "timeout_secs": length + 60,
		"command": fmt.Sprintf("echo m1 >> ../marks; sleep %d; echo the end; exit 3", length)})
	var job struct {
		JobID string `json:"job_id"`
	}
	if err := ran.Decode(&job); err != nil || job.JobID == "" {
		t.Fatalf("it did not become a Job: %s", ran.Text)
	}
	for end := time.Now().Add(time.Duration(length)*time.Second + time.Minute); ; time.Sleep(200 * time.Millisecond) {
		seen := r.call("call_runtime_tool", args{"tool": "observe_jobs", "arguments": args{"items": []args{{"job_id": job.JobID}}}})
		if strings.Contains(seen.Text, "the end") && strings.Contains(seen.Text, `"exit_code":3`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the Job's end is not seen: %s", seen.Text)
		}
	}
	if n := r.marks("m1"); n != 1 {
		t.Errorf("%d marks", n)
	}
}
