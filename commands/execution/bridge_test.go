package execution_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/leak"
	"webcodex/runner"
	"webcodex/runner/supervise"
	"webcodex/runner/wire"
)

// frame is one message between the Runner's process and the test, which is the network.
type frame struct {
	Reply bool            `json:"reply,omitempty"`
	N     int             `json:"n"`
	Verb  wire.Verb       `json:"verb,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
}

var fromRunner = []wire.Verb{wire.VerbHello, wire.VerbClaim, wire.VerbStart, wire.VerbResult}
var toRunner = []wire.Verb{wire.VerbOffer, wire.VerbQuery, wire.VerbRead, wire.VerbCancel}

// TestMain makes the test binary double as a Runner's process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervise.Main())
	}
	if dir := os.Getenv("EXECUTION_TEST_RUNNER"); dir != "" {
		if err := runnerProcess(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// The model's rounds wait much more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(leak.Main(m))
}

// runnerProcess is a Runner on a bus of its own, whose messages go over standard input and
// output, until it is killed or its input ends.
func runnerProcess(dir string) error {
	tmp, err := os.MkdirTemp("", "bus-")
	if err != nil {
		return err
	}
	log, err := eventlog.Open(context.Background(), eventlog.Options{Dir: tmp, Durability: eventlog.Process, Server: event.NewInstanceID(), MaxBytes: 64 << 20})
	if err != nil {
		return err
	}
	_ = os.RemoveAll(tmp) // a killed process leaves nothing behind
	server, err := log.ServerBus()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	send := func(f frame) { mu.Lock(); defer mu.Unlock(); _ = out.Encode(f) }
	answers := map[int]func([]byte){}
	for _, v := range fromRunner {
		sub, err := server.SubscribeSync(wire.Subject(client, v))
		if err != nil {
			return err
		}
		go func() {
			for {
				m, err := sub.NextMsg(time.Hour)
				if err != nil {
					return
				}
				mu.Lock()
				n := len(answers) + 1
				answers[n] = func(b []byte) { _ = m.Respond(b) }
				mu.Unlock()
				send(frame{N: n, Verb: v, Data: m.Data})
			}
		}()
	}
	r, err := runner.New(runner.Options{Dir: filepath.Join(dir, "runner"), Client: client, Build: "test",
		Supervisor: []string{os.Args[0], "webcodex", "supervise"}})
	if err != nil {
		return err
	}
	if _, err := r.AddProject(filepath.Join(dir, "root")); err != nil {
		return err
	}
	bus, err := log.RunnerBus(client)
	if err != nil {
		return err
	}
	go func() { _ = r.Serve(context.Background(), bus) }()
	in := json.NewDecoder(os.Stdin)
	for {
		var f frame
		if err := in.Decode(&f); err != nil {
			return nil
		}
		if f.Reply {
			mu.Lock()
			answer := answers[f.N]
			mu.Unlock()
			answer(f.Data)
			continue
		}
		go func() {
			if m, err := server.Request(wire.Subject(client, f.Verb), f.Data, 30*time.Second); err == nil {
				send(frame{Reply: true, N: f.N, Data: m.Data})
			}
		}()
	}
}

// runnerLife is a running Runner process as the network sees it.
type runnerLife struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	mu   sync.Mutex
	n    int
	want map[int]chan json.RawMessage
	dead chan struct{}
}

func startRunner(t *testing.T, dir string, receive func(p *runnerLife, f frame)) *runnerLife {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	// What a killed process leaves goes with the test.
	cmd.Env = append(os.Environ(), "EXECUTION_TEST_RUNNER="+dir, "TMPDIR="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &runnerLife{cmd: cmd, in: in, want: map[int]chan json.RawMessage{}, dead: make(chan struct{})}
	go func() {
		lines := bufio.NewReaderSize(out, 2<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			var f frame
			if json.Unmarshal(line, &f) != nil {
				continue
			}
			if f.Reply {
				p.mu.Lock()
				ch := p.want[f.N]
				p.mu.Unlock()
				if ch != nil {
					ch <- f.Data
				}
				continue
			}
			receive(p, f)
		}
		_ = cmd.Wait()
		close(p.dead)
	}()
	return p
}

func (p *runnerLife) send(f frame) {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.in.Write(append(b, '\n'))
}

// request asks the Runner; nil where no answer came.
func (p *runnerLife) request(v wire.Verb, data []byte, timeout time.Duration) json.RawMessage {
	ch := make(chan json.RawMessage, 2)
	p.mu.Lock()
	p.n++
	n := p.n
	p.want[n] = ch
	p.mu.Unlock()
	p.send(frame{N: n, Verb: v, Data: data})
	select {
	case b := <-ch:
		return b
	case <-p.dead:
	case <-time.After(timeout):
	}
	return nil
}

// kill ends the process without notice.
func (p *runnerLife) kill() {
	_ = p.cmd.Process.Kill()
	<-p.dead
}

func countLines(file, line string) int {
	b, _ := os.ReadFile(file)
	n := 0
	for l := range strings.SplitSeq(string(b), "\n") {
		if l == line {
			n++
		}
	}
	return n
}
