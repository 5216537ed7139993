package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"webcodex/internal/proc"
)

// guardName is the argument that makes the supervisor's program a guard.
const guardName = "guard"

// Bounds of a guard.
const (
	// guardWrite is how long it may take to take a word, guardEnd to end when it is told to.
	guardWrite = 100 * time.Millisecond
	// guardAfter is how long something runs before it is worth a word: each one wakes the guard, and
	// most commands are over by then.
	guardAfter = 100 * time.Millisecond
	guardEnd   = 2 * time.Second
)

// Guard is a process beside a Runner that ends what the Runner left running where it dies without a
// word (faults.md 3: what ran in a killed Runner ends with it). It is started with the first thing
// that is held, and knows of each only how to find its processes. A nil Guard guards nothing.
type Guard struct {
	argv []string

	mu  sync.Mutex
	in  *os.File
	cmd *exec.Cmd
	off bool // it could not be started, or is gone
}

// NewGuard gives a guard that is not started yet. supervisor is the program's path, then its arguments
// from the zeroth on, as for Pending.Start; empty: nil.
func NewGuard(supervisor []string) *Guard {
	if len(supervisor) < 2 {
		return nil
	}
	return &Guard{argv: append(supervisor[:len(supervisor):len(supervisor)], guardName)}
}

// guarded is one word to the guard: what to hold, or what to let go of. The last one is Done.
type guarded struct {
	Hold *proc.Leftover `json:"hold,omitempty"`
	Drop string         `json:"drop,omitempty"`
	Done bool           `json:"done,omitempty"`
}

// Hold has the processes of an execution ended when this process dies. Said again it replaces what
// was said of the same mark. Where it fails nothing is guarded: the Runner's next life ends what is
// left.
func (g *Guard) Hold(l proc.Leftover) { g.tell(guarded{Hold: &l}, true) }

// Watch holds an execution once it has run for a moment, until ended is called.
func (g *Guard) Watch(l proc.Leftover) (ended func()) {
	if g == nil {
		return func() {}
	}
	var mu sync.Mutex
	var held, over bool
	t := time.AfterFunc(guardAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			g.Hold(l)
			held = true
		}
	})
	return func() {
		t.Stop()
		mu.Lock()
		defer mu.Unlock()
		if over = true; held {
			g.Drop(l.Mark)
		}
	}
}

// Drop lets go of an execution that has ended.
func (g *Guard) Drop(mark string) { g.tell(guarded{Drop: mark}, false) }

// Close ends the guard; it does nothing to what is held.
func (g *Guard) Close() {
	if g == nil {
		return
	}
	g.tell(guarded{Done: true}, false)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.off = true
	if g.cmd == nil {
		return
	}
	_ = g.in.Close()
	late := time.AfterFunc(guardEnd, func() { _ = g.cmd.Process.Kill() })
	_ = g.cmd.Wait()
	late.Stop()
	g.cmd = nil
}

func (g *Guard) tell(w guarded, start bool) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.off || g.cmd == nil && !start {
		return
	}
	if g.cmd == nil && g.start() != nil {
		g.off = true
		return
	}
	b, err := json.Marshal(w)
	if err == nil {
		_ = g.in.SetWriteDeadline(time.Now().Add(guardWrite))
		_, err = g.in.Write(append(b, '\n'))
	}
	g.off = g.off || err != nil
}

func (g *Guard) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := &exec.Cmd{Path: g.argv[0], Args: g.argv[1:], Stdin: r, Env: proc.Environment(os.Environ(), []string{proc.Helper}),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return err
	}
	g.in, g.cmd = w, cmd
	return nil
}

// guard is the guard's process: it listens until its Runner says that it is done, or is gone.
func guard() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	held := map[string]proc.Leftover{}
	for words := json.NewDecoder(os.Stdin); ; {
		var w guarded
		if words.Decode(&w) != nil {
			break
		}
		switch {
		case w.Done:
			return 0
		case w.Hold != nil:
			held[w.Hold.Mark] = *w.Hold
		default:
			delete(held, w.Drop)
		}
	}
	var list []proc.Leftover
	for _, l := range held {
		list = append(list, l)
	}
	if alive, _ := proc.EndLeftovers(list); len(alive) > 0 {
		fmt.Fprintln(os.Stderr, "webcodex: of a Runner that died still run:", alive)
	}
	return 0
}
