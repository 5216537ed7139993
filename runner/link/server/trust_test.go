package server_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// pretender stands where the server is and says what a test wants, with whatever signature.
type pretender struct {
	*gate
	bus     *nats.Conn
	key     ed25519.PrivateKey // the one that the Runner enrolled at
	project *runner.Project
	self    event.InstanceID

	mu    sync.Mutex
	grant func(m *nats.Msg, body []byte) []byte // the signature of a grant; nil: none
	last  *nats.Msg                             // the claim before
	sig   []byte
	ends  chan wire.Result
}

func key(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func signed(subject string, body, sig []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: body}
	if sig != nil {
		m.Header = nats.Header{wire.SignatureHeader: []string{base64.RawURLEncoding.EncodeToString(sig)}}
	}
	return m
}

func newPretender(t *testing.T) *pretender {
	t.Helper()
	p := &pretender{gate: newGate(t), key: key(t), ends: make(chan wire.Result, 16)}
	root := filepath.Join(p.dir, "site")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Options{Dir: filepath.Join(p.dir, "runner"), Client: "a", Server: p.key.Public().(ed25519.PublicKey)})
	if err != nil {
		t.Fatal(err)
	}
	if p.project, err = r.AddProject(root); err != nil {
		t.Fatal(err)
	}
	p.self = r.Instance()
	if p.bus, err = p.log.ServerBus(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{})
	var once sync.Once
	answer := func(v wire.Verb, do func(*nats.Msg) (any, func(m *nats.Msg, body []byte) []byte)) {
		if _, err := p.bus.Subscribe(wire.Subject("a", v), func(m *nats.Msg) {
			out, sign := do(m)
			body := encode(out)
			_ = p.bus.PublishMsg(signed(m.Reply, body, sign(m, body)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	right := func(v wire.Verb) func(m *nats.Msg, body []byte) []byte {
		return func(m *nats.Msg, body []byte) []byte { return wire.SignReply(p.key, "a", v, m.Data, body) }
	}
	answer(wire.VerbHello, func(m *nats.Msg) (any, func(*nats.Msg, []byte) []byte) {
		if h, err := decode[wire.Hello](m.Data); err == nil && h.Listening {
			once.Do(func() { close(listening) })
		}
		return wire.HelloReply{OK: true}, right(wire.VerbHello)
	})
	answer(wire.VerbClaim, func(m *nats.Msg) (any, func(*nats.Msg, []byte) []byte) {
		return wire.ClaimReply{Granted: true, RemainingMS: 5000}, func(m *nats.Msg, body []byte) []byte {
			p.mu.Lock()
			defer p.mu.Unlock()
			sig := p.grant(m, body)
			p.last, p.sig = m, wire.SignReply(p.key, "a", wire.VerbClaim, m.Data, body)
			return sig
		}
	})
	answer(wire.VerbResult, func(m *nats.Msg) (any, func(*nats.Msg, []byte) []byte) {
		if res, err := decode[wire.Result](m.Data); err == nil {
			p.ends <- res
		}
		return wire.Ack{OK: true}, right(wire.VerbResult)
	})
	nc := p.runner("a")
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, nc) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = r.Close()
	})
	select {
	case <-listening:
	case <-soon(t).Done():
		t.Fatal("the Runner does not listen")
	}
	return p
}

// offer is one that would leave a mark.
func (p *pretender) offer(change func(*wire.Offer)) wire.Offer {
	o := wire.Offer{ID: event.NewExecutionID(), Digest: "d", Op: wire.OpShell, Body: encode(wire.ProcessIn{Command: "echo x >> marks", Shell: "sh"}),
		Bounds: wire.Bounds{TimeoutMS: 5000}, Fence: wire.Fence{Client: "a", Instance: p.self, Project: p.project.ID, Root: p.project.Fingerprint}}
	change(&o)
	return o
}

func (p *pretender) send(v wire.Verb, body, sig []byte) ([]byte, bool) {
	m, err := p.bus.RequestMsg(signed(wire.Subject("a", v), body, sig), 500*time.Millisecond)
	if err != nil {
		return nil, false
	}
	return m.Data, true
}

func (p *pretender) marks() int {
	b, _ := os.ReadFile(filepath.Join(p.project.Path, "marks"))
	return len(b) / 2
}

// A Runner does nothing that is not signed for it by the server that it enrolled at: an offer
// without a signature, with another's, made for another client, life or directory, or changed on
// its way; a grant without, with another's, or the one of another claim; a read and a question.
//
// Covers: AUTH-19
func TestForgedMessagesAreRefused(t *testing.T) {
	t.Parallel()
	p := newPretender(t)
	p.grant = func(m *nats.Msg, body []byte) []byte { return wire.SignReply(p.key, "a", wire.VerbClaim, m.Data, body) }
	other := key(t)
	own := func(c event.ClientID) func([]byte) []byte {
		return func(b []byte) []byte { return wire.SignRequest(p.key, c, wire.VerbOffer, b) }
	}
	for name, c := range map[string]struct {
		change func(*wire.Offer)
		sign   func([]byte) []byte
		reason string
	}{
		"no signature":      {func(*wire.Offer) {}, func([]byte) []byte { return nil }, "unsigned"},
		"half a signature":  {func(*wire.Offer) {}, func(b []byte) []byte { return own("a")(b)[:32] }, "unsigned"},
		"another's":         {func(*wire.Offer) {}, func(b []byte) []byte { return wire.SignRequest(other, "a", wire.VerbOffer, b) }, "unsigned"},
		"another client's":  {func(*wire.Offer) {}, own("b"), "unsigned"},
		"another verb's":    {func(*wire.Offer) {}, func(b []byte) []byte { return wire.SignRequest(p.key, "a", wire.VerbRead, b) }, "unsigned"},
		"changed":           {func(*wire.Offer) {}, func(b []byte) []byte { return own("a")(append([]byte{' '}, b...)) }, "unsigned"},
		"another life's":    {func(o *wire.Offer) { o.Fence.Instance = event.NewInstanceID() }, own("a"), "fence_instance"},
		"another root's":    {func(o *wire.Offer) { o.Fence.Root = "r" }, own("a"), "fence_root"},
		"a client's inside": {func(o *wire.Offer) { o.Fence.Client = "b" }, own("a"), "fence_instance"},
	} {
		body := encode(p.offer(c.change))
		got, ok := p.send(wire.VerbOffer, body, c.sign(body))
		reply, err := decode[wire.OfferReply](got)
		if !ok || err != nil || reply.Accepted || reply.Fault == nil || reply.Fault.Kind != fault.RunnerRefused || reply.Fault.Reason != c.reason || reply.Fault.ExecutionState != string(event.NotStarted) {
			t.Errorf("%s: %v %s", name, ok, got)
		}
	}
	for _, v := range []wire.Verb{wire.VerbQuery, wire.VerbCancel} {
		if got, ok := p.send(v, encode(wire.Query{ID: event.NewExecutionID()}), nil); ok {
			t.Errorf("%s without a signature is answered: %s", v, got)
		}
	}
	read, ok := p.send(wire.VerbRead, encode(wire.Read{Op: wire.OpObserveJobs}), nil)
	if r, err := decode[wire.ReadReply](read); !ok || err != nil || r.Fault == nil || r.Fault.Reason != "unsigned" {
		t.Errorf("a read without a signature: %s", read)
	}
	if n := p.marks(); n != 0 {
		t.Fatalf("%d marks", n)
	}
	run := func(grant func(m *nats.Msg, body []byte) []byte) wire.Result {
		t.Helper()
		p.mu.Lock()
		p.grant = grant
		p.mu.Unlock()
		body := encode(p.offer(func(*wire.Offer) {}))
		if got, ok := p.send(wire.VerbOffer, body, own("a")(body)); !ok {
			t.Fatalf("no answer: %s", got)
		}
		select {
		case r := <-p.ends:
			return r
		case <-soon(t).Done():
			t.Fatal("no end")
			return wire.Result{}
		}
	}
	right := func(m *nats.Msg, body []byte) []byte { return wire.SignReply(p.key, "a", wire.VerbClaim, m.Data, body) }
	if r := run(right); r.State != wire.JTerminal || p.marks() != 1 {
		t.Fatalf("%+v, %d marks", r, p.marks())
	}
	for name, grant := range map[string]func(m *nats.Msg, body []byte) []byte{
		"no signature":     func(*nats.Msg, []byte) []byte { return nil },
		"another's":        func(m *nats.Msg, body []byte) []byte { return wire.SignReply(other, "a", wire.VerbClaim, m.Data, body) },
		"another claim's":  func(*nats.Msg, []byte) []byte { return p.sig },
		"another client's": func(m *nats.Msg, body []byte) []byte { return wire.SignReply(p.key, "b", wire.VerbClaim, m.Data, body) },
		"another answer's": func(m *nats.Msg, _ []byte) []byte { return right(m, []byte("{}")) },
		"a request's":      func(_ *nats.Msg, body []byte) []byte { return wire.SignRequest(p.key, "a", wire.VerbClaim, body) },
	} {
		if r := run(grant); r.State != wire.JNever || p.marks() != 1 {
			t.Errorf("%s: %+v, %d marks", name, r, p.marks())
		}
	}
}
