package runner

import (
	"testing"

	"webcodex/runner/wire"
)

// Whoever asks for an execution at the moment at which the journal gets its end is told what it
// printed, as a moment later.
//
// Covers: EXE-38
func TestAnEndIsWholeFromItsFirstMoment(t *testing.T) {
	g := newRig(t)
	for range 100 {
		o := g.make(wire.OpShell, wire.ProcessIn{Command: "echo said", Shell: "sh"})
		seen := make(chan *wire.Result)
		go func() {
			for {
				if known, ok := g.journal.find(o.ID); ok && known.result != nil {
					seen <- g.resultOf(o.ID, known)
					return
				}
			}
		}()
		g.do(o)
		if r := <-seen; r == nil || r.Process == nil || r.Process.Stdout.Text != "said\n" {
			t.Fatalf("%+v", r)
		}
	}
}
