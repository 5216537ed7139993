package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/commands/call"
)

// eraCalls gives the same call in the modern era, in a legacy session, and without one.
func (r *rig) eraCalls(tool, args string) map[string]request {
	return map[string]request{
		"modern":         modernCall(tool, args, ""),
		"legacy session": legacyCall(tool, args, legacyHeader(legacy2, r.initialize(legacy2))),
		"legacy bare":    legacyCall(tool, args, map[string]string{"Mcp-Protocol-Version": legacy1}),
	}
}

// TestArgumentsArriveUnchanged: exact integers, lenient spellings, strict fields.
func TestArgumentsArriveUnchanged(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ name, in, want string }{
		{"2^53+1", `{"n":9007199254740993}`, `{"n":9007199254740993}`},
		{"greatest int64", `{"n":9223372036854775807}`, `{"n":9223372036854775807}`},
		{"stringified array, null, numbers as strings", `{"list":"[\"a\"]","flag":null,"n":"7"}`, `{"n":7,"list":["a"]}`},
		{"all as one string", `"{\"text\":\"<&>\"}"`, `{"text":"<&>"}`},
		{"no arguments", `null`, `{}`},
		{"what HTML would escape", `{"text":"<a href=\"x\">&\u2028"}`, `{"text":"<a href=\"x\">&\u2028"}`},
	} {
		for era, q := range r.eraCalls("echo", c.in) {
			m := last(t, r.send(q))
			if m.Error != nil || m.Result.IsError || len(m.Result.Content) != 1 {
				t.Errorf("%s, %s: %+v", c.name, era, m)
				continue
			}
			want := `{"success":true,"output":` + c.want + `}`
			if m.Result.Content[0].Text != want {
				t.Errorf("%s, %s: text %s", c.name, era, m.Result.Content[0].Text)
			}
			if !sameJSON(t, m.Result.Structured, []byte(want)) {
				t.Errorf("%s, %s: structure %s", c.name, era, m.Result.Structured)
			}
		}
	}
}

// sameJSON compares values, numbers by their digits.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	norm := func(raw []byte) string {
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		out, _ := json.Marshal(v)
		return string(out)
	}
	return norm(a) == norm(b)
}

// TestRefusals: an isError result has text and structure, each enough, and names the field.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ tool, args, text, output string }{
		{"refused", `{}`, "error_kind: edit_conflict\nthe file changed\nnext: read it again",
			`{"conflicts":[{"path":"a<b"}],"error_kind":"edit_conflict","field":"changes[0].path","reason_code":"stale","recovery_kind":"re_read","state_changed":false,"command_started":false}`},
		{"echo", `{"bogus":1}`, "error_kind: invalid_arguments\nbogus is not a field of this tool\nnext: leave it out; the fields are text, n, list, flag",
			`{"error_kind":"invalid_arguments","field":"bogus","recovery_kind":"fix_arguments","state_changed":false,"command_started":false}`},
		{"echo", `{"list":["a","b","c","d"]}`, "error_kind: invalid_arguments\nlist must have at most 3 items\nnext: correct list and call again",
			`{"error_kind":"invalid_arguments","field":"list","recovery_kind":"fix_arguments","state_changed":false,"command_started":false}`},
		{"echo", `{"n":1,"n":2}`, "error_kind: invalid_arguments\nn is given twice\nnext: correct n and call again",
			`{"error_kind":"invalid_arguments","field":"n","recovery_kind":"fix_arguments","state_changed":false,"command_started":false}`},
		{"call_runtime_tool", `{"tool":"no_such"}`, "error_kind: unknown_tool\nno tool has this name\nnext: call read_tool_manifest to see the tools",
			`{"error_kind":"unknown_tool","field":"tool","recovery_kind":"fix_arguments","state_changed":false,"command_started":false}`},
		{"call_runtime_tool", `{"tool":"call_runtime_tool"}`, "error_kind: invalid_arguments\ncall_runtime_tool cannot call itself\nnext: correct tool and call again",
			`{"error_kind":"invalid_arguments","field":"tool","recovery_kind":"fix_arguments","state_changed":false,"command_started":false}`},
		{"call_runtime_tool", `{"tool":"echo","arguments":{"bogus":1}}`, "error_kind: invalid_arguments\nbogus is not a field of this tool\nnext: leave it out; the fields are text, n, list, flag",
			`{"error_kind":"invalid_arguments","field":"bogus","recovery_kind":"fix_arguments","state_changed":false,"command_started":false}`},
	} {
		for era, q := range r.eraCalls(c.tool, c.args) {
			m := last(t, r.send(q))
			if m.Error != nil || !m.Result.IsError || len(m.Result.Content) != 1 {
				t.Errorf("%s %s, %s: %+v", c.tool, c.args, era, m)
				continue
			}
			if m.Result.Content[0].Text != c.text {
				t.Errorf("%s: text %q", era, m.Result.Content[0].Text)
			}
			sentence := strings.Split(c.text, "\n")[1]
			if want := `{"success":false,"output":` + c.output + `,"error":"` + sentence + `"}`; !sameJSON(t, m.Result.Structured, []byte(want)) {
				t.Errorf("%s: %s", era, m.Result.Structured)
			}
		}
	}
}

// TestFailedResultIsNoError: a command that failed is a result (ruling 9).
func TestFailedResultIsNoError(t *testing.T) {
	r := newRig(t)
	m := last(t, r.send(modernCall("failed", `{}`, "")))
	if m.Result.IsError || m.Result.Content[0].Text != `{"success":false,"output":{"exit_code":1},"error":"a test failed <here>"}` {
		t.Errorf("%+v", m.Result)
	}
}

// TestIndirectCall: call_runtime_tool gives the target's own result, also for arguments as a
// JSON string, and reaches what tools/list leaves out.
func TestIndirectCall(t *testing.T) {
	r := newRig(t)
	for _, args := range []string{
		`{"tool":"hidden_echo","arguments":{"n":9007199254740993}}`,
		`{"tool":"hidden_echo","arguments":"{\"n\":9007199254740993}"}`,
	} {
		m := last(t, r.send(modernCall("call_runtime_tool", args, "")))
		if m.Result.IsError || m.Result.Content[0].Text != `{"success":true,"output":{"n":9007199254740993}}` {
			t.Errorf("%s: %+v", args, m.Result)
		}
	}
}

// TestPanicsAreOneFailedCall: in the tool, in the edge, early and late; the server lives on.
func TestPanicsAreOneFailedCall(t *testing.T) {
	r := newRig(t)
	close(r.probe.release)
	for _, c := range []struct{ tool, args string }{{"tool_panic", `{}`}, {"edge_panic", `{}`}, {"wait", `{"then":"panic"}`}} {
		for era, q := range r.eraCalls(c.tool, c.args) {
			m := last(t, r.send(q))
			if !m.Result.IsError || !strings.Contains(m.Result.Content[0].Text, "error_kind: internal") {
				t.Errorf("%s, %s: %+v", c.tool, era, m)
			}
			if strings.Contains(string(m.Result.Structured), "goroutine") || strings.Contains(string(m.Result.Structured), "inside\"") {
				t.Errorf("%s: %s", c.tool, m.Result.Structured)
			}
		}
	}
	if m := last(t, r.send(modernCall("echo", `{}`, ""))); m.Result.IsError {
		t.Error("the server did not live on")
	}
}

// TestCallsAtOnce: a caller has a bounded number of calls in flight, and the bound frees.
func TestCallsAtOnce(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	for range call.MaxCallsPerPrincipal {
		wg.Go(func() { r.send(modernCall("wait", `{}`, "")) })
	}
	for range call.MaxCallsPerPrincipal {
		soon(t, r.probe.entered, "calls in flight")
	}
	m := last(t, r.send(modernCall("echo", `{}`, "")))
	if !m.Result.IsError || !strings.Contains(m.Result.Content[0].Text, "too_many_calls") {
		t.Errorf("%+v", m)
	}
	close(r.probe.release)
	wg.Wait()
	if m := last(t, r.send(modernCall("echo", `{}`, ""))); m.Result.IsError {
		t.Errorf("%+v", m)
	}
}

// stream opens a call and hands its lines out as they come.
func (r *rig) stream(ctx context.Context, q request) <-chan string {
	r.t.Helper()
	if q.method == "" {
		q.method = http.MethodPost
	}
	resp := make(chan *http.Response, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, q.method, r.url, strings.NewReader(q.body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "Bearer "+r.access.Token())
		req.Header.Set("Content-Type", "application/json")
		for k, v := range q.header {
			req.Header.Set(k, v)
		}
		got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			got = nil
		}
		resp <- got
	}()
	lines := make(chan string, 1024)
	go func() {
		defer close(lines)
		got := <-resp
		if got == nil {
			return
		}
		defer got.Body.Close()
		sc := bufio.NewScanner(got.Body)
		for sc.Scan() {
			lines <- sc.Text()
		}
	}()
	return lines
}

// getStream opens the stream of a legacy session for what no request asked for, and waits
// until it stands.
func (r *rig) getStream(ctx context.Context, session string) <-chan string {
	r.t.Helper()
	lines := r.stream(ctx, request{method: http.MethodGet, header: legacyHeader(legacy2, session)})
	soon(r.t, lines, "GET stream")
	return lines
}

// TestHeartbeat: bytes leave while a tool is silent, in each era, and the answer still comes.
func TestHeartbeat(t *testing.T) {
	r := newRig(t)
	for era, q := range r.eraCalls("wait", `{}`) {
		lines := r.stream(t.Context(), q)
		soon(t, r.probe.entered, era)
		for beats := 0; beats < 3; {
			if l := soon(t, lines, era+": heartbeat"); l == ": keep-alive" {
				beats++
			} else if l != "" {
				t.Fatalf("%s: %q before the end", era, l)
			}
		}
		r.probe.release <- struct{}{}
		answered := false
		for l := range lines {
			answered = answered || strings.Contains(l, `"released":true`) || strings.Contains(l, `\"released\":true`)
		}
		if !answered {
			t.Errorf("%s: no answer after the heartbeats", era)
		}
	}
}

// TestProgress: a client with a token hears of it on the call's own stream, rising, and
// nothing after the answer. It hears long before the first keep-alive.
func TestProgress(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Heartbeat = time.Hour })
	meta := `"progressToken":"tok"`
	legacy := legacyCall("wait", `{}`, legacyHeader(legacy2, r.initialize(legacy2)))
	legacy.body = strings.Replace(legacy.body, `"name"`, `"_meta":{`+meta+`},"name"`, 1)
	for era, q := range map[string]request{"modern": modernCall("wait", `{}`, meta), "legacy": legacy} {
		lines := r.stream(t.Context(), q)
		soon(t, r.probe.entered, era)
		time.AfterFunc(10*time.Second, func() { // where nothing is heard the call must end all the same
			select {
			case r.probe.release <- struct{}{}:
			default:
			}
		})
		at, seen, ended := -1.0, 0, false
		for l := range lines {
			data, ok := strings.CutPrefix(l, "data: ")
			if !ok {
				continue
			}
			var m rpc
			if err := json.Unmarshal([]byte(data), &m); err != nil || ended {
				t.Fatalf("%s: %q after %v", era, l, ended)
			}
			if m.Method == "" {
				ended = true
				continue
			}
			var p struct {
				Token    string  `json:"progressToken"`
				Progress float64 `json:"progress"`
				Message  string  `json:"message"`
			}
			if err := json.Unmarshal(m.Params, &p); err != nil || m.Method != "notifications/progress" || p.Token != "tok" || p.Progress <= at || !strings.HasPrefix(p.Message, "running, ") {
				t.Errorf("%s: %s after %v", era, data, at)
			}
			at = p.Progress
			if seen++; seen == 2 {
				go func() { r.probe.release <- struct{}{} }()
			}
		}
		if seen < 2 || !ended {
			t.Errorf("%s: %d notifications, ended %v", era, seen, ended)
		}
	}
}

// TestPaceOfProgress: who asked for progress hears of each call that a Job could come of, and
// before it becomes one; who did not gets keep-alives.
func TestPaceOfProgress(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Heartbeat, c.progress = 0, pace{} })
	if got := r.srv.pace(&reporter{token: "tok"}); got.first < 500*time.Millisecond || got.first > 2*time.Second || got.then > 5*time.Second {
		t.Errorf("progress at %+v", got)
	}
	if got := r.srv.pace(&reporter{}); got != (pace{10 * time.Second, 10 * time.Second}) {
		t.Errorf("keep-alives at %+v", got)
	}
}

// TestLateRefusalReachesTheClient: after progress or a heartbeat a refusal is still an event
// of the stream; a bare error there would leave modern clients waiting for ever.
func TestLateRefusalReachesTheClient(t *testing.T) {
	r := newRig(t)
	for _, then := range []string{"fail", "panic"} {
		for name, q := range map[string]request{"heartbeat": modernCall("wait", `{"then":"`+then+`"}`, ""),
			"progress": modernCall("wait", `{"then":"`+then+`"}`, `"progressToken":1`)} {
			lines := r.stream(t.Context(), q)
			soon(t, r.probe.entered, name)
			soon(t, lines, name+": first bytes")
			r.probe.release <- struct{}{}
			answered := false
			for l := range lines {
				if l != "" && !strings.HasPrefix(l, ":") && !strings.HasPrefix(l, "data: ") && !strings.HasPrefix(l, "event: ") {
					t.Errorf("%s: a line that is no event: %q", name, l)
				}
				answered = answered || strings.HasPrefix(l, "data: ") && strings.Contains(l, `"isError":true`)
			}
			if !answered {
				t.Errorf("%s, %s: no answer", name, then)
			}
		}
	}
}

// TestCancellation: a modern client cancels by leaving, a legacy one only by saying so
// (ruling 10).
func TestCancellation(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.stream(ctx, modernCall("wait", `{}`, ""))
	soon(t, r.probe.entered, "modern")
	cancel()
	if err := soon(t, r.probe.ended, "modern disconnect"); err == nil {
		t.Error("the modern call ran on after its client had left")
	}

	session := r.initialize(legacy2)
	for name, header := range map[string]map[string]string{"session": legacyHeader(legacy2, session), "bare": nil} {
		ctx, cancel = context.WithCancel(t.Context())
		lines := r.stream(ctx, legacyCall("wait", `{}`, header))
		soon(t, r.probe.entered, name)
		soon(t, lines, name+": first bytes")
		cancel()
		for range lines { // until the client has really gone
		}
		select {
		case err := <-r.probe.ended:
			t.Errorf("%s: the legacy call ended with its connection: %v", name, err)
		case <-time.After(200 * time.Millisecond):
		}
		r.probe.release <- struct{}{}
		if err := soon(t, r.probe.ended, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Another id: the call before may still be on its way out.
	q := legacyCall("wait", `{}`, legacyHeader(legacy2, session))
	q.body = strings.Replace(q.body, `"id":7`, `"id":9`, 1)
	lines := r.stream(t.Context(), q)
	soon(t, r.probe.entered, "legacy cancel")
	r.send(request{body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`, header: legacyHeader(legacy2, session)})
	if err := soon(t, r.probe.ended, "notifications/cancelled"); err == nil {
		t.Error("the cancelled legacy call ran on")
	}
	go func() {
		for range lines {
		}
	}()
}
