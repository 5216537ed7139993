package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/run"
	"webcodex/commands/runtime"
	"webcodex/eventlog/event"
	"webcodex/mcp/client"
)

// island is a network namespace with one way to the server, which can be taken down.
type island struct {
	t            *testing.T
	name         string
	near, far    string // the ends of its way
	server, self string // addresses
}

// newIsland makes the namespace; the test is skipped where that may not be.
func newIsland(t *testing.T, n int) *island {
	t.Helper()
	id := fmt.Sprintf("%d%c", os.Getpid(), 'a'+n)
	net := fmt.Sprintf("10.231.%d", 1+(os.Getpid()*2+n)%250)
	i := &island{t: t, name: "wc" + id, near: "wcn" + id, far: "wcf" + id, server: net + ".1", self: net + ".2"}
	for _, line := range []string{
		"ip netns add " + i.name,
		"ip link add " + i.near + " type veth peer name " + i.far,
		"ip link set " + i.far + " netns " + i.name,
		"ip addr add " + i.server + "/24 dev " + i.near,
		"ip link set " + i.near + " up",
		"ip -n " + i.name + " addr add " + i.self + "/24 dev " + i.far,
		"ip -n " + i.name + " link set " + i.far + " up",
		"ip -n " + i.name + " link set lo up",
	} {
		args := strings.Fields(line)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			i.remove()
			t.Skipf("no network namespace can be made here: %s: %v: %s", line, err, out)
		}
	}
	t.Cleanup(i.remove)
	return i
}

func (i *island) remove() {
	_ = exec.Command("ip", "link", "del", i.near).Run()
	_ = exec.Command("ip", "netns", "del", i.name).Run()
}

// cut takes the way down, or up again.
func (i *island) cut(down bool) {
	i.t.Helper()
	state := "up"
	if down {
		state = "down"
	}
	if out, err := exec.Command("ip", "link", "set", i.near, state).CombinedOutput(); err != nil {
		i.t.Fatalf("%v: %s", err, out)
	}
}

// inhabitant is a Runner on an island.
type inhabitant struct {
	*island
	dir      string
	client   event.ClientID
	projects []string
}

// settle enrols a Runner on the island and serves n repositories there.
func (i *island) settle(data, dir, port string, n int) *inhabitant {
	t := i.t
	t.Helper()
	issued := webcodexJSON[access.RunnerIssued](t, "token", "create", "--kind", "runner", "--name", i.name, "--data", data, "--json")
	h := &inhabitant{island: i, dir: filepath.Join(dir, i.name), client: issued.Client}
	own := filepath.Join(h.dir, "data")
	args := []string{"netns", "exec", i.name, program(t), "runner", "--json", "--data", own, "--durability", "process",
		"--enroll", issued.Code, "--server", "tls://" + net.JoinHostPort(i.server, port)}
	for k := range n {
		repo := filepath.Join(h.dir, fmt.Sprintf("repo%d", k))
		if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		args = append(args, repo)
	}
	c, err := startProgram(t.Context(), "ip", nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	var ready runnerReady
	if err := json.Unmarshal(c.line, &ready); err != nil || len(ready.Projects) != n {
		t.Fatalf("%s: %v", c.line, err)
	}
	h.projects = ready.Projects
	return h
}

// marks are what commands have left on the island.
func (h *inhabitant) marks() string {
	b, _ := os.ReadFile(filepath.Join(h.dir, "marks"))
	return string(b)
}

// Two Runners and three Projects in network namespaces of their own. One is cut off for longer than
// its lease: the other's Jobs and calls are as ever; of the one that is away nothing is claimed; its
// Jobs go on there. When the way is back, both sides tell the same of every Job, and each was
// started once.
//
// Covers: EXE-38, NEG-33
func TestARunnerIsCutOff(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	left, right := newIsland(t, 0), newIsland(t, 1)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	c, err := startProgram(t.Context(), program(t), nil, "serve", "--json", "--data", data, "--listen", "127.0.0.1:0",
		"--durability", "process", "--runner-listen", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	host, err := client.Connect(t.Context(), client.Options{URL: c.ready.MCPURL, Token: c.ready.Token})
	if err != nil {
		t.Fatal(err)
	}
	w := &remote{t: t, mcp: host}
	port := c.ready.Runners[0][strings.LastIndexByte(c.ready.Runners[0], ':')+1:]
	a, b := left.settle(data, dir, port, 2), right.settle(data, dir, port, 1)

	jobs := map[event.ExecutionID]int{}
	for k, project := range []string{a.projects[0], a.projects[1], b.projects[0]} {
		begun := w.call("run_job", args{"project": project, "command": fmt.Sprintf("echo job%d >> ../marks; sleep 8; echo done%d; exit %d", k, k, 3+k)})
		var out struct {
			JobID event.ExecutionID `json:"job_id"`
		}
		if err := begun.Decode(&out); err != nil || out.JobID == "" {
			t.Fatalf("%v %s", err, begun.Text)
		}
		jobs[out.JobID] = 3 + k
	}
	for end := time.Now().Add(20 * time.Second); !strings.Contains(a.marks(), "job0") || !strings.Contains(a.marks(), "job1"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the Jobs do not start")
		}
	}
	left.cut(true)
	begun := time.Now()
	w.unreached(a)
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("the Runner was thought to be there for %s", took)
	}
	// The other's Job ends in the meantime, and the other is as ever.
	for id, code := range jobs {
		if code == 5 {
			w.ended(id, code)
		} else if seen := w.status(id); seen.Terminal || seen.Status == "running" {
			t.Errorf("of a Job that nobody can see it is said: %+v", seen)
		}
	}
	if ran := w.call("run_shell", args{"project": b.projects[0], "command": "echo still >> ../marks"}); ran.IsError || !strings.Contains(b.marks(), "still") {
		t.Errorf("%s", ran.Text)
	}
	left.cut(false)
	for id, code := range jobs {
		w.ended(id, code)
	}
	w.reached(a)
	if ran := w.call("run_shell", args{"project": a.projects[1], "command": "echo back >> ../marks"}); ran.IsError {
		t.Errorf("%s", ran.Text)
	}
	for mark, n := range map[string]int{"job0\n": 1, "job1\n": 1, "never\n": 0, "back\n": 1} {
		if have := strings.Count(a.marks(), mark); have != n {
			t.Errorf("%d of %q on the one side", have, mark)
		}
	}
	if have := strings.Count(b.marks(), "job2\n"); have != 1 {
		t.Errorf("%d starts on the other side", have)
	}
}

// unreached waits until the Runner counts as gone; until then a call of it starts nothing that is
// not said.
func (r *remote) unreached(h *inhabitant) {
	r.t.Helper()
	r.counts(h, "disconnected")
	ran := r.call("run_shell", args{"project": h.projects[0], "command": "echo never >> ../marks"})
	if f := refusalOf(r.t, ran); !ran.IsError || f.Kind != "runner_unavailable" || f.CommandStarted == nil || *f.CommandStarted {
		r.t.Errorf("%s", ran.Text)
	}
}

// reached waits until the Runner counts as there.
func (r *remote) reached(h *inhabitant) { r.counts(h, "connected") }

func (r *remote) counts(h *inhabitant, as string) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		var list runtime.ListRunnersOut
		res := r.call("call_runtime_tool", args{"tool": "list_runners", "arguments": args{"client_id": h.client}})
		if err := res.Decode(&list); err != nil || len(list.Runners) != 1 {
			r.t.Fatalf("%v %s", err, res.Text)
		}
		if list.Runners[0].Status == as {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("it counts as %s", list.Runners[0].Status)
		}
	}
}

func (r *remote) status(id event.ExecutionID) run.JobStatus {
	r.t.Helper()
	res := r.call("call_runtime_tool", args{"tool": "get_job_status", "arguments": args{"job_id": id}})
	var out run.JobStatus
	if err := res.Decode(&out); err != nil || res.IsError {
		r.t.Fatalf("%v %s", err, res.Text)
	}
	return out
}

// ended waits for a Job's end and holds it against the exit code that it must have.
func (r *remote) ended(id event.ExecutionID, code int) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		s := r.status(id)
		if s.Terminal {
			if s.ExitCode == nil || *s.ExitCode != code {
				r.t.Errorf("%+v, not exit code %d", s, code)
			}
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("it does not end: %+v", s)
		}
	}
}
