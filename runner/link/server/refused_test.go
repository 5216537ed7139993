package server_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"webcodex/eventlog/event"
	"webcodex/runner/link/client"
)

// heard is a log that can be read while it is written.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

func (h *heard) count(s string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.b.String(), s)
}

// A Runner whose key was revoked tries on for ever and says once that it is refused; again only
// when it had been let in between.
func TestARevokedRunnerSaysSoOnce(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	seed, err := client.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	admit := func(yes bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if delete(g.keys, public); yes {
			g.keys[public] = event.ClientID("a")
		}
	}
	refused := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.refusals
	}
	admit(true)
	said := &heard{}
	nc, err := client.Dial(t.Context(), client.Remote{URL: "nats://" + g.addr, Client: "a", Seed: seed,
		Logger: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for round := 1; round <= 2; round++ {
		tries := refused()
		admit(false)
		g.log.CutRunner("a")
		for end := time.Now().Add(20 * time.Second); refused() < tries+3; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it does not try on")
			}
		}
		if n := said.count("does not take this Runner's key"); n != round {
			t.Errorf("round %d: told %d times", round, n)
		}
		admit(true)
		for end := time.Now().Add(30 * time.Second); !nc.IsConnected(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it does not come back")
			}
		}
	}
}
