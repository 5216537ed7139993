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
	shut bool     // nobody looks any more
	seen []byte   // the last bytes before the line is complete
	said []string // the words of the line; nil until it came
}

// maxSaid bounds the starter's line in bytes.
const maxSaid = 256

// Write never fails.
func (g *gate) Write(p []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return
	}
	if g.said != nil {
		g.to.Write(p)
		return
	}
	g.seen = append(g.seen, p...)
	at := bytes.Index(g.seen, g.token)
	if at < 0 {
		// The token may have begun at the end.
		g.seen = append([]byte(nil), g.seen[max(0, len(g.seen)-len(g.token)+1):]...)
		return
	}
	g.seen = g.seen[at:]
	line, rest, whole := bytes.Cut(g.seen, []byte("\n"))
	if !whole {
		return
	}
	g.said, g.seen = strings.Fields(string(line[len(g.token):min(len(line), maxSaid)])), nil
	if g.said == nil {
		g.said = []string{""}
	}
	if g.said[0] == wordRun {
		g.open()
		if len(rest) > 0 {
			g.to.Write(rest)
		}
	}
}

// close lets nothing through any more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// words are what the starter said, nil where it said nothing.
func (g *gate) words() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said
}
