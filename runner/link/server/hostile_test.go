package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"webcodex/commands/call"
	"webcodex/commands/execution"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// What a hello may not say is refused or taken out of it: another's name, another protocol, what
// has no form, too much of anything, Projects that the credential does not name.
func TestHostileHello(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.fleet(func(id event.ProjectID, name string) bool { return name == "site" }, "bad", "good")
	nc := g.runner("bad")
	huge := strings.Repeat("x", 1<<20-4096)
	many := func(n int) []string { return make([]string, n) }
	for name, c := range map[string]struct {
		body   []byte
		reason string // empty: no answer at all
	}{
		"another's name":    {encode(hello("good", same)), wire.RefusedMalformed},
		"no instance":       {encode(hello("bad", func(h *wire.Hello) { h.Instance = "" })), wire.RefusedMalformed},
		"another protocol":  {encode(hello("bad", func(h *wire.Hello) { h.Protocol = 99 })), wire.RefusedProtocol},
		"a long generation": {encode(hello("bad", func(h *wire.Hello) { h.Generation = strings.Repeat("g", 4096) })), wire.RefusedMalformed},
		"a strange boot":    {encode(hello("bad", func(h *wire.Hello) { h.Boot = "\x1b[2J" })), wire.RefusedMalformed},
		"no fingerprint":    {encode(hello("bad", func(h *wire.Hello) { h.Projects[0].Root = "root" })), wire.RefusedMalformed},
		"capabilities":      {encode(hello("bad", func(h *wire.Hello) { h.Capabilities = many(1000) })), wire.RefusedMalformed},
		"Projects":          {encode(hello("bad", func(h *wire.Hello) { h.Projects = make([]wire.Project, wire.MaxProjects+1) })), wire.RefusedMalformed},
		"Jobs":              {encode(hello("bad", func(h *wire.Hello) { h.Jobs = []wire.JobSummary{{ID: "x"}} })), wire.RefusedMalformed},
		"a megabyte":        {encode(hello("bad", func(h *wire.Hello) { h.Build = huge })), ""},
		"depth":             {[]byte(`{"protocol":1,"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"), ""},
		"no JSON":           {[]byte("\x00\xff{"), ""},
		"another type":      {[]byte(`{"protocol":"1","client":[]}`), ""},
		"nothing":           {nil, ""},
	} {
		time.Sleep(60 * time.Millisecond) // within its rate
		reply, answered := ask[wire.HelloReply](g, nc, wire.Subject("bad", wire.VerbHello), c.body)
		if answered != (c.reason != "") || reply.OK || reply.Reason != c.reason || answered && reply.Text == "" {
			t.Errorf("%s: %v %+v", name, answered, reply)
		}
	}
	if n := len(f.Runners()); n != 0 {
		t.Fatalf("%d Runners", n)
	}
	fine := hello("bad", func(h *wire.Hello) {
		h.Build = "v1\x1b]0;x\x07\u009b2J" + strings.Repeat("b", 10_000)
		h.Projects = append(h.Projects, wire.Project{ID: "etc-00000002", Name: "etc", Root: strings.Repeat("b", 64)})
	})
	if reply, _ := ask[wire.HelloReply](g, nc, wire.Subject("bad", wire.VerbHello), encode(fine)); !reply.OK || reply.Build != "server 1" || reply.Protocol != wire.Protocol {
		t.Fatalf("%+v", reply)
	}
	seen := f.Runners()
	if len(seen) != 1 || seen[0].Projects != 1 || len(seen[0].Build) > 200 || strings.ContainsAny(seen[0].Build, "\x1b\x07\u009b") {
		t.Errorf("%+v", seen)
	}
	if _, err := f.Target(event.ProjectRef{Client: "bad", Project: "etc-00000002"}); fault.KindOf(err) != fault.UnknownProject {
		t.Errorf("a Project that the credential does not name: %v", err)
	}
	stranger := g.runner("stranger")
	if reply, _ := ask[wire.HelloReply](g, stranger, wire.Subject("stranger", wire.VerbHello), encode(hello("stranger", same))); reply.OK || reply.Reason != wire.RefusedRevoked {
		t.Errorf("one that is not admitted: %+v", reply)
	}
}

// A Runner that lives keeps its lease against a second instance of it, and loses it at once when
// it is dead.
func TestOneInstanceHasTheLease(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.fleet(everything, "a")
	first, second := g.runner("a"), g.runner("a")
	one, two := hello("a", same), hello("a", same)
	if _, err := first.Subscribe(wire.Subject("a", wire.VerbQuery), func(m *nats.Msg) { _ = m.Respond(encode(wire.QueryReply{State: wire.JAbsent})) }); err != nil {
		t.Fatal(err)
	}
	if reply, _ := ask[wire.HelloReply](g, first, wire.Subject("a", wire.VerbHello), encode(one)); !reply.OK {
		t.Fatalf("%+v", reply)
	}
	if reply, _ := ask[wire.HelloReply](g, second, wire.Subject("a", wire.VerbHello), encode(two)); reply.OK || reply.Reason != wire.RefusedSecond ||
		!strings.Contains(reply.Text, "another Runner") {
		t.Fatalf("%+v", reply)
	}
	if seen := f.Runners(); len(seen) != 1 || seen[0].Instance != one.Instance {
		t.Errorf("%+v", seen)
	}
	first.Close()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if reply, _ := ask[wire.HelloReply](g, second, wire.Subject("a", wire.VerbHello), encode(two)); reply.OK {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a dead Runner keeps its lease")
		}
	}
}

// flood sends n messages and counts the answers.
func flood(t *testing.T, nc *nats.Conn, subject string, n int, body []byte) (answered int) {
	t.Helper()
	inbox := nats.NewInbox()
	inbox = wire.InboxPrefix("bad") + strings.TrimPrefix(inbox, "_INBOX")
	heard := make(chan *nats.Msg, n)
	sub, err := nc.ChanSubscribe(inbox, heard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for range n {
		if err := nc.PublishRequest(subject, inbox, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-heard:
			answered++
		case <-time.After(300 * time.Millisecond):
			return answered
		}
	}
}

// A Runner that sends without end is served at its rate, and another one as if it were not there.
func TestOneRunnerCannotFlood(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.fleet(everything, "bad", "good")
	bad, good := g.runner("bad"), g.runner("good")
	answered := flood(t, bad, wire.Subject("bad", wire.VerbHello), 2000, encode(hello("bad", func(h *wire.Hello) { h.Protocol = 99 })))
	if answered > 100 || answered == 0 {
		t.Errorf("%d of 2000 hellos were answered", answered)
	}
	if reply, ok := ask[wire.HelloReply](g, good, wire.Subject("good", wire.VerbHello), encode(hello("good", same))); !ok || !reply.OK {
		t.Errorf("another Runner: %v %+v", ok, reply)
	}
	answered = flood(t, bad, wire.Subject("bad", wire.VerbClaim), 20_000, encode(wire.Claim{ID: event.NewExecutionID()}))
	if answered > 15_000 {
		t.Errorf("%d of 20000 claims were answered", answered)
	}
}

// What one Runner says of another's execution changes nothing, and what it says of its own is cut
// and cleaned before anybody sees it.
func TestHostileResults(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.fleet(everything, "good", "bad")
	good, bad := g.runner("good"), g.runner("bad")
	mine := hello("good", same)
	for c, nc := range map[event.ClientID]*nats.Conn{"good": good, "bad": bad} {
		h := mine
		h.Client = c
		if reply, _ := ask[wire.HelloReply](g, nc, wire.Subject(c, wire.VerbHello), encode(h)); !reply.OK {
			t.Fatalf("%+v", reply)
		}
	}
	target, err := f.Target(event.ProjectRef{Client: "good", Project: "site-00000001"})
	if err != nil {
		t.Fatal(err)
	}
	offered := make(chan wire.Offer, 1)
	answer := func(nc *nats.Conn, v wire.Verb, do func(*nats.Msg) any) {
		if _, err := nc.Subscribe(wire.Subject("good", v), func(m *nats.Msg) { _ = m.Respond(encode(do(m))) }); err != nil {
			t.Fatal(err)
		}
		_ = nc.Flush()
	}
	answer(good, wire.VerbOffer, func(m *nats.Msg) any {
		o, err := decode[wire.Offer](m.Data)
		if err != nil {
			t.Error(err)
		}
		offered <- o
		return wire.OfferReply{Accepted: true, State: wire.JAccepted}
	})
	o := wire.Offer{ID: event.NewExecutionID(), Op: wire.OpShell, Body: encode(wire.ProcessIn{Command: "true", Shell: "sh"}), Bounds: wire.Bounds{TimeoutMS: 5000},
		Fence: wire.Fence{Client: "good", Instance: target.Instance, Project: target.Ref.Project, Root: target.Root}}
	o.Digest = f.Digest(o)
	ended := make(chan call.Outcome, 1)
	go func() {
		out, err := f.Run(context.Background(), call.Execution{Target: target, Offer: o, Ready: func(context.Context) error { return nil }})
		if err != nil {
			t.Errorf("run: %v", err)
		}
		ended <- out
	}()
	<-offered
	zero := 0
	end := wire.Result{ID: o.ID, Digest: o.Digest, Instance: target.Instance, State: wire.JTerminal, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &zero}}
	claim := wire.Claim{ID: o.ID, Digest: o.Digest, Instance: target.Instance}
	if reply, _ := ask[wire.ClaimReply](g, bad, wire.Subject("bad", wire.VerbClaim), encode(claim)); reply.Granted {
		t.Error("another Runner was granted it")
	}
	if ack, ok := ask[wire.Ack](g, bad, wire.Subject("bad", wire.VerbResult), encode(end)); !ok || ack.OK {
		t.Errorf("another Runner's end: %+v", ack)
	}
	for name, change := range map[string]func(*wire.Result){
		"another digest":   func(r *wire.Result) { r.Digest = strings.Repeat("0", 64) },
		"another instance": func(r *wire.Result) { r.Instance = event.NewInstanceID() },
		"no end":           func(r *wire.Result) { r.State = wire.JRunning },
	} {
		r := end
		change(&r)
		if ack, _ := ask[wire.Ack](g, good, wire.Subject("good", wire.VerbResult), encode(r)); ack.OK {
			t.Errorf("%s: %+v", name, ack)
		}
	}
	if reply, _ := ask[wire.ClaimReply](g, good, wire.Subject("good", wire.VerbClaim), encode(claim)); !reply.Granted {
		t.Fatalf("%+v", reply)
	}
	p := end.Process
	p.Stdout = wire.Stream{Text: strings.Repeat("é", 200<<10)[1:], Bytes: -5, DroppedBytes: -1}
	p.LeftoverAlive = make([]string, 10_000)
	p.Tests = &wire.TestReport{Parser: "\x1b[31m", Failed: -3, FailedTests: make([]wire.FailedTest, 200), Diagnostics: make([]wire.Diagnostic, 200)}
	p.Tests.FailedTests[0].Message = "\x1b]0;evil\x07" + strings.Repeat("m", 50_000)
	end.DurationMS, end.EndedAt = -1, "tomorrow"
	end.Fault = &fault.Error{Kind: "Not A Kind", Message: strings.Repeat("x", 100_000), Details: map[string]any{"a": strings.Repeat("y", 300<<10)}}
	go func() { _, _ = good.Request(wire.Subject("good", wire.VerbResult), encode(end), 5*time.Second) }()
	var out call.Outcome
	select {
	case out = <-ended:
	case <-soon(t).Done():
		t.Fatal("no end")
	}
	r := out.Result
	if r == nil || r.State != wire.JTerminal || r.Process == nil {
		t.Fatalf("%+v", out)
	}
	size := len(encode(r))
	switch q := r.Process; {
	case size > 512<<10, !utf8.ValidString(q.Stdout.Text), q.Stdout.Bytes < 0, q.Stdout.DroppedBytes < 0, !q.Stdout.Truncated,
		len(q.LeftoverAlive) > 100, len(q.Tests.FailedTests) > wire.MaxFailedTests, len(q.Tests.Diagnostics) > wire.MaxDiagnostics,
		q.Tests.Failed < 0, strings.Contains(q.Tests.Parser, "\x1b"), strings.ContainsAny(q.Tests.FailedTests[0].Message, "\x1b\x07"),
		len(q.Tests.FailedTests[0].Message) > 5000, r.DurationMS < 0, r.EndedAt != "", r.Fault.Kind != fault.RunnerRefused, r.Fault.Details != nil:
		t.Errorf("%d bytes: %s", size, fmt.Sprintf("%+v", r)[:2000])
	}
}

// What a Runner's journal is said to hold is cut and cleaned like an end that it tells, and a first
// execution of a key is believed only where there is a key, and an id.
func TestHostileJournal(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.fleet(everything, "bad")
	nc := g.runner("bad")
	if reply, _ := ask[wire.HelloReply](g, nc, wire.Subject("bad", wire.VerbHello), encode(hello("bad", same))); !reply.OK {
		t.Fatalf("%+v", reply)
	}
	var word, first atomic.Value // encoded
	for v, say := range map[wire.Verb]*atomic.Value{wire.VerbQuery: &word, wire.VerbOffer: &first} {
		if _, err := nc.Subscribe(wire.Subject("bad", v), func(m *nats.Msg) { _ = m.Respond(say.Load().([]byte)) }); err != nil {
			t.Fatal(err)
		}
	}
	huge := strings.Repeat("x", 300<<10)
	word.Store(encode(wire.QueryReply{State: wire.JTerminal, Result: &wire.Result{State: wire.JTerminal, EndedAt: huge,
		Fault: &fault.Error{Kind: fault.Kind(huge), FailureKind: "\x1b[2J", Message: huge}}}))
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	q, err := f.Query(soon(t), "bad", event.NewExecutionID())
	if err != nil || q.Result == nil || q.Result.Fault == nil || len(encode(q)) > 10<<10 || q.Result.Fault.Kind != fault.RunnerRefused || q.Result.Fault.FailureKind != "" {
		t.Errorf("an end: %v, %d bytes", err, len(encode(q)))
	}
	word.Store(encode(wire.QueryReply{State: wire.JTerminal, Result: &wire.Result{State: wire.JournalState(huge)}}))
	if q, err = f.Query(soon(t), "bad", event.NewExecutionID()); err != nil || q.Result != nil {
		t.Errorf("an end that is none: %v, %d bytes", err, len(encode(q)))
	}
	target, err := f.Target(event.ProjectRef{Client: "bad", Project: "site-00000001"})
	if err != nil {
		t.Fatal(err)
	}
	for key, reply := range map[string]event.ExecutionID{"": event.NewExecutionID(), "k": event.ExecutionID("wc_exec_" + huge)} {
		first.Store(encode(wire.OfferReply{State: wire.JRefused, First: reply}))
		o := wire.Offer{ID: event.NewExecutionID(), Op: wire.OpShell, Body: encode(wire.ProcessIn{Command: "true", Shell: "sh"}), Key: key,
			Bounds: wire.Bounds{TimeoutMS: 5000}, Fence: wire.Fence{Client: "bad", Instance: target.Instance, Project: target.Ref.Project, Root: target.Root}}
		o.Digest = f.Digest(o)
		out, err := f.Run(soon(t), call.Execution{Target: target, Offer: o, Ready: func(context.Context) error { return nil }})
		if err != nil || out.First != "" || out.Result == nil || out.Result.State != wire.JRefused || fault.KindOf(out.Result.Fault) != fault.RunnerRefused {
			t.Errorf("key %q: %v %+v", key, err, out)
		}
	}
}

// A Runner that announces other Projects at every hello writes no more into the log than a bound,
// and serves what it may all the same.
func TestAnnouncedProjectsAreBounded(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	registered := make(chan event.ProjectRegistered, 10_000)
	bus, err := g.log.ServerBus()
	if err != nil {
		t.Fatal(err)
	}
	f, err := execution.New(execution.Options{Bus: bus, Dir: g.dir, Server: event.NewInstanceID(),
		Register: func(_ context.Context, p event.ProjectRegistered) error { registered <- p; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	nc := g.runner("bad")
	h := hello("bad", same)
	for round := range 4 {
		h.Projects = nil
		for n := range wire.MaxProjects {
			h.Projects = append(h.Projects, wire.Project{ID: event.ProjectID(fmt.Sprintf("p%d-%08x", round, n)), Name: "p", Root: strings.Repeat("a", 64)})
		}
		if reply, _ := ask[wire.HelloReply](g, nc, wire.Subject("bad", wire.VerbHello), encode(h)); !reply.OK {
			t.Fatalf("%+v", reply)
		}
		time.Sleep(150 * time.Millisecond)
	}
	if n := len(registered); n > wire.MaxProjects+10 || n == 0 {
		t.Errorf("%d registrations", n)
	}
	if _, err := f.Target(event.ProjectRef{Client: "bad", Project: "p3-00000001"}); err != nil {
		t.Errorf("a Project that it serves: %v", err)
	}
}
