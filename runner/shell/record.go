package shell

import (
	"context"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// record is one shell, from its opening on, and what is remembered of it (SHL-14).
type record struct {
	s       *Shells
	id      event.ShellID
	session event.SessionID
	project event.ProjectID
	// Where it was opened is fixed from then on (SHL-12).
	dialect, cwd, resource string
	profile                string
	generation             string // of the profile, or of the resource's settings

	abort context.CancelFunc // ends the opening
	done  chan struct{}      // closed when it has ended and is retired

	mu       sync.Mutex
	state    wire.ShellState
	reason   string
	ending   bool // somebody ends it
	busy     bool
	engine   Engine // nil while opening
	exit     Exit
	initCode *int // of the profile's script; nil: there is none
	commands int
	created  time.Time
	used     time.Time
	endedAt  time.Time
	idle     *time.Timer
}

// opened makes a running shell of one that was being opened. It is false where somebody has ended
// it meanwhile: then the engine has to be closed.
func (r *record) opened(e Engine) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return false
	}
	r.engine, r.state, r.used = e, wire.ShellRunning, r.s.o.Now()
	r.restLocked()
	go r.watch(e)
	return true
}

// watch ends the record of a shell that has ended while nothing ran in it.
func (r *record) watch(e Engine) {
	<-e.Gone()
	state, reason := ofExit(e.Exit())
	r.endIf(state, reason, func() bool { return !r.busy }) // else who runs the command sees it
}

// ofExit is the state after a shell has ended, and why.
func ofExit(x Exit) (wire.ShellState, string) {
	switch {
	case x.Damaged:
		return wire.ShellPoisoned, wire.ShellByDamage
	case x.Lost:
		return wire.ShellLost, wire.ShellByTransport
	}
	return wire.ShellExited, wire.ShellByExit
}

// restLocked begins the time after which an idle shell is ended (SHL-19).
func (r *record) restLocked() {
	if r.idle != nil {
		r.idle.Stop()
	}
	if !r.ending {
		r.idle = time.AfterFunc(r.s.o.Idle, r.tired)
	}
}

func (r *record) tired() {
	r.endIf(wire.ShellClosed, wire.ShellByIdle, func() bool { return !r.busy })
}

// end ends the shell, for the reason that came first, and returns when it has ended.
func (r *record) end(state wire.ShellState, reason string) {
	r.endIf(state, reason, func() bool { return true })
}

// endIf is end, where still holds under the lock.
func (r *record) endIf(state wire.ShellState, reason string, still func() bool) {
	r.mu.Lock()
	if !still() {
		r.mu.Unlock()
		return
	}
	first := !r.ending
	if first {
		r.ending, r.state, r.reason = true, state, reason
		if r.idle != nil {
			r.idle.Stop()
		}
	}
	e := r.engine
	r.mu.Unlock()
	if !first || e == nil { // somebody ends it, or who opens it sees that it is to end
		r.abort()
		<-r.done
		return
	}
	e.Close()
	r.over(e)
}

// over notes that nothing of the shell is left.
func (r *record) over(e Engine) {
	r.mu.Lock()
	r.endedAt, r.exit = r.s.o.Now(), e.Exit()
	r.mu.Unlock()
	r.s.retire(r)
	close(r.done)
}

// begin takes the shell for one command (SHL-21).
func (r *record) begin() (Engine, *fault.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ending:
		return nil, r.goneLocked()
	case r.state == wire.ShellOpening || r.busy:
		f := fault.New(fault.ShellBusy, "this persistent shell runs a command").
			WithNext("wait for its end; a shell runs one command at a time, and run_shell runs beside it")
		f.Recovery = fault.RetrySame
		return nil, notStarted(f)
	}
	r.busy = true
	r.commands++
	if r.idle != nil {
		r.idle.Stop()
	}
	return r.engine, nil
}

// gone is the refusal of a command for a shell that is no more, nil for one that is.
func (r *record) gone() *fault.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ending {
		return nil
	}
	return r.goneLocked()
}

// goneLocked refuses a command for a shell that is no more.
func (r *record) goneLocked() *fault.Error {
	const next = "open another with open_session_shell; it begins afresh"
	switch r.state {
	case wire.ShellExited:
		return notStarted(fault.New(fault.ShellProcessExited, "this persistent shell has exited").WithReason(r.reason).WithNext(next))
	case wire.ShellPoisoned, wire.ShellLost:
		return notStarted(fault.New(fault.ShellResetRequired, "this persistent shell was lost, and what it knew with it").WithReason(r.reason).WithNext(next))
	}
	return notFound(r.reason)
}

// rest gives the shell back after a command.
func (r *record) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy, r.used = false, r.s.o.Now()
	r.restLocked()
	if gone(r.engine) { // right after its answer
		go r.watch(r.engine)
	}
}

// view is how it stands.
func (r *record) view() wire.ShellView {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := wire.ShellView{ID: r.id, State: r.state, Reason: r.reason, Busy: r.busy && !r.ending, Dialect: r.dialect, Profile: r.profile, Executor: "local",
		Resource: r.resource, Cwd: r.cwd, Created: event.FormatTime(r.created), Used: event.FormatTime(r.used), Commands: r.commands,
		InitExitCode: r.initCode,
		IdleSecs:     int(r.s.o.Idle.Seconds())}
	if r.resource != "" {
		v.Executor = "ssh"
	}
	if !r.endedAt.IsZero() {
		v.Ended = event.FormatTime(r.endedAt)
	}
	if r.state == wire.ShellExited {
		v.ExitCode = r.exit.Code
	}
	if r.exit.Unknown {
		v.RemoteProcess = "unknown"
	}
	return v
}
