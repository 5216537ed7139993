package eventlog

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog/event"
)

// heard collects what is logged.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

func (h *heard) count(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.b.String(), text)
}

func (h *heard) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// A checkpoint that cannot be written is told once, not each second, and again when it fails
// after it had worked.
func TestFailingCheckpointIsToldOnce(t *testing.T) {
	t.Parallel()
	const text = "checkpoint could not be written"
	dir, h := t.TempDir(), &heard{}
	l := open(t, dir, func(o *Options) { o.Logger = h.logger() })
	a := event.SessionAggregate(event.NewSessionID())
	inTheWay := filepath.Join(dir, checkpointName+".tmp")
	for round := 1; round <= 2; round++ {
		if err := os.Mkdir(inTheWay, 0o700); err != nil {
			t.Fatal(err)
		}
		r, err := l.Append(context.Background(), draft(l, t, a))
		if err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { return h.count(text) >= round })
		if round == 1 {
			time.Sleep(2*checkpointInterval + checkpointInterval/2)
		}
		if n := h.count(text); n != round {
			t.Fatalf("told %d times in round %d", n, round)
		}
		if err := os.Remove(inTheWay); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool {
			cp, _, err := l.dir.readCheckpoint()
			return err == nil && cp.Seq >= r.Seq
		})
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for range 600 {
		if done() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("not in time")
}

// What the embedded server says reaches a person only where it is an error.
func TestServerTextIsForErrors(t *testing.T) {
	h := &heard{}
	l := &serverLog{log: h.logger(), writeError: func() {}}
	l.Noticef("notice %d", 1)
	l.Warnf("warning %d", 2)
	l.Errorf("error %d", 3)
	if h.count("notice")+h.count("warning") != 0 || h.count("error 3") != 1 {
		t.Errorf("logged: %s", h.b.String())
	}
}
