package ssh

import (
	"bytes"
	"strings"
	"sync"

	"webcodex/internal/proc"
)

// gate stands before the standard output: it looks for the line of the starter, drops what came
// before it, and lets through what comes after.
type gate struct {
	token []byte
	to    *proc.Tail
	open  func() // called once, when the command begins

	mu   sync.Mutex
	seen []byte   // the last bytes before the line is complete
	said []string // the words of the line; nil until it came
}

// maxSaid bounds the starter's line in bytes.
const maxSaid = 256

// Write never fails.
func (g *gate) Write(p []byte) {
	g.mu.Lock()
	if g.said != nil {
		g.mu.Unlock()
		g.to.Write(p)
		return
	}
	g.seen = append(g.seen, p...)
	at := bytes.Index(g.seen, g.token)
	if at < 0 {
		// The token may have begun at the end.
		g.seen = append([]byte(nil), g.seen[max(0, len(g.seen)-len(g.token)+1):]...)
		g.mu.Unlock()
		return
	}
	g.seen = g.seen[at:]
	line, rest, whole := bytes.Cut(g.seen, []byte("\n"))
	if !whole {
		g.mu.Unlock()
		return
	}
	g.said, g.seen = strings.Fields(string(line[len(g.token):min(len(line), maxSaid)])), nil
	if g.said == nil {
		g.said = []string{""}
	}
	run := g.said[0] == wordRun
	g.mu.Unlock()
	if run {
		g.open()
		if len(rest) > 0 {
			g.to.Write(rest)
		}
	}
}

// words are what the starter said, nil where it said nothing.
func (g *gate) words() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said
}
