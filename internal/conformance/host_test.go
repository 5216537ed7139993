package conformance_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

type args = map[string]any

// host is a client of others in the hands of a test (node/host.mjs): a process, one window of
// its own, one SDK.
type host struct {
	t      *testing.T
	name   string
	modern bool // of the era that has the envelope
	listed map[string]bool
	kept   ledger
	made   map[string][]string // of its own calls, those that a Session keeps

	mu   sync.Mutex
	in   io.WriteCloser
	last int
	open map[int]chan line
}

// line is what a host says of an order.
type line struct {
	ID       int             `json:"id"`
	Progress bool            `json:"progress"`
	Result   json.RawMessage `json:"result"`
	Error    string          `json:"error"`
}

// callLimit is within the host's own time-out, so that the test names the call that hangs.
const callLimit = 80 * time.Second

// newHost starts a host. SDK v2 is here for the modern era, v1 for those before.
func newHost(t *testing.T, n nodeDir, sdk, name string, kept ledger) *host {
	t.Helper()
	h := &host{t: t, name: name + " with SDK " + sdk, modern: sdk == "v2", kept: kept, made: map[string][]string{}, open: map[int]chan line{}}
	cmd := exec.Command(n.node, n.script(t, "host.mjs"), sdk)
	var said tailBuffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		h.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.hear(out)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		h.in.Close()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Errorf("%s does not end", h.name)
			cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("the last words of %s: %s", h.name, said.String())
		}
	})
	return h
}

// hear hands each line to who waits for it; at the end nobody waits any more.
func (h *host) hear(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		raw, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		var l line
		if json.Unmarshal(raw, &l) != nil {
			continue
		}
		h.mu.Lock()
		c := h.open[l.ID]
		if !l.Progress {
			delete(h.open, l.ID)
		}
		h.mu.Unlock()
		if c != nil {
			select {
			case c <- l:
			default: // more progress than anybody listens to
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, c := range h.open {
		c <- line{ID: id, Error: "the host has ended"}
	}
}

// order tells the host to do something; what it says comes through the channel.
func (h *host) order(do string, with args) <-chan line {
	h.t.Helper()
	c := make(chan line, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.open[h.last] = c
	whole := args{"id": h.last, "do": do}
	for k, v := range with {
		whole[k] = v
	}
	raw, err := json.Marshal(whole)
	if err == nil {
		_, err = h.in.Write(append(raw, '\n'))
	}
	if err != nil {
		h.t.Fatalf("%s: %v", h.name, err)
	}
	return c
}

// answer is the last line of an order.
func (h *host) answer(what string, c <-chan line) line {
	h.t.Helper()
	limit := time.After(callLimit)
	for {
		select {
		case l := <-c:
			if !l.Progress {
				return l
			}
		case <-limit:
			h.t.Fatalf("%s: %s has no end", h.name, what)
		}
	}
}

// connect opens the connection anew and reads the list of tools.
func (h *host) connect(r ready) {
	h.t.Helper()
	if l := h.answer("connect", h.order("connect", args{"target": args{"url": r.MCPURL, "token": r.Token}})); l.Error != "" {
		h.t.Fatalf("%s does not connect: %s", h.name, l.Error)
	}
	l := h.answer("tools", h.order("tools", nil))
	var tools []struct {
		Name   string
		Schema struct{ Properties map[string]json.RawMessage } `json:"inputSchema"`
	}
	if err := json.Unmarshal(l.Result, &tools); err != nil || len(tools) == 0 {
		h.t.Fatalf("%s: %s %v", h.name, l.Error, err)
	}
	h.listed = map[string]bool{}
	for _, tool := range tools {
		h.listed[tool.Name] = true
		if _, has := tool.Schema.Properties["_wc"]; has != h.modern {
			h.t.Errorf("%s sees an envelope in %s: %v", h.name, tool.Name, has)
		}
		if tool.Schema.Properties["recording_session_id"] != nil || tool.Schema.Properties["ack_session_message_ids"] != nil {
			h.t.Errorf("%s sees the other era's members in %s", h.name, tool.Name)
		}
	}
}

// goOn is what a host does after the server's restart: without sessions it simply goes on;
// where its session is unknown it opens another.
func (h *host) goOn(r ready) {
	h.t.Helper()
	if h.modern {
		return
	}
	if l := h.answer("a call", h.send("list_projects", nil, beside{})); !strings.Contains(l.Error, "session not found") {
		h.t.Errorf("%s: a session of before the restart: %s%s", h.name, l.Error, l.Result)
	}
	h.connect(r)
}

// beside is what travels with a call beside the tool's own arguments.
type beside struct {
	record  string
	ack     []string
	ackRef  string // of the envelope alone, as are the two below
	reply   args
	resolve args
}

// on lays it on the arguments, in the form of the host's era.
func (b beside) on(h *host, a args) args {
	h.t.Helper()
	out, env := args{}, args{}
	for k, v := range a {
		out[k] = v
	}
	record, ack := "recording_session_id", "ack_session_message_ids"
	if h.modern {
		record, ack = "record", "ack"
	}
	for name, given := range map[string]any{record: b.record, ack: b.ack, "ack_ref": b.ackRef, "reply": b.reply, "resolve": b.resolve} {
		if v := reflect.ValueOf(given); v.Len() > 0 {
			env[name] = given
		}
	}
	switch {
	case !h.modern && (b.ackRef != "" || b.reply != nil || b.resolve != nil):
		h.t.Fatalf("%s has no envelope", h.name)
	case h.modern && len(env) > 0:
		out["_wc"] = env
	case !h.modern:
		for k, v := range env {
			out[k] = v
		}
	}
	return out
}

// send begins a call. What the list leaves out goes through call_runtime_tool, as a model would
// have it.
func (h *host) send(tool string, a args, b beside) <-chan line {
	h.t.Helper()
	if a == nil {
		a = args{}
	}
	if !h.listed[tool] {
		a, tool = args{"tool": tool, "arguments": a}, "call_runtime_tool"
	}
	return h.order("call", args{"name": tool, "arguments": b.on(h, a), "meta": args{"openai/session": "v1/" + h.name}})
}

// waiting begins a call and returns when the server has told that it goes on with it.
func (h *host) waiting(tool string, a args, b beside) <-chan line {
	h.t.Helper()
	c := h.send(tool, a, b)
	select {
	case l := <-c:
		if !l.Progress {
			h.t.Fatalf("%s: %s did not wait: %s%s", h.name, tool, l.Error, l.Result)
		}
	case <-time.After(callLimit):
		h.t.Fatalf("%s: no word of %s", h.name, tool)
	}
	return c
}
