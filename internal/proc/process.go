package proc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Command is one child process to be run.
type Command struct {
	// Mark names the execution; every process that descends from it carries it.
	Mark       string
	Executable string
	Args       []string
	// Dir is the opened working directory; the child enters it, whatever its path leads to by
	// then. The caller keeps it open until Start returns.
	Dir *os.File
	// Env is the whole environment, see Environment.
	Env []string
	// Stdin is written and then closed; empty: the null device.
	Stdin []byte
	// Interactive gives the child a terminal of its own in place of Stdin; what it prints on either
	// stream comes as Stdout. Input types on it.
	Interactive bool
	// OnWaiting is told when what runs on the terminal begins or ceases to wait for input; may be
	// nil. It must be quick.
	OnWaiting func(waiting bool)
	// Files are further descriptors of the child, from 3 on. The caller keeps them open until it is
	// launched, and closes its own ends.
	Files []*os.File
	// Timeout ends the execution; 0: none.
	Timeout time.Duration
	// Stdout and Stderr receive what the child writes.
	Stdout, Stderr *Tail
	// Tee sees standard output as it streams; may be nil. It runs on one goroutine.
	Tee func([]byte)
	// TeeErr is the same for standard error.
	TeeErr func([]byte)
	// Notify is told that output came on either stream; may be nil. It must be quick.
	Notify func()
}

// Exit is how an execution ended.
type Exit struct {
	// Reaped tells that the process's end was seen; Code or Signal is then set.
	Reaped    bool
	Code      *int
	Signal    string // SIGKILL and the like
	TimedOut  bool
	Cancelled bool
	Duration  time.Duration
	// LeftoverKilled tells that members outlived the process and were ended; LeftoverAlive
	// names ("pid name") those that could not be, and those that may be its own or those of an
	// execution beside it.
	LeftoverKilled bool
	LeftoverAlive  []string
}

// Process is a started child.
type Process struct {
	c          Command
	executable string
	mark       string
	child      []*os.File // the child's ends, until it is launched
	proc       *os.Process
	cell       *cell     // what holds it all; nil: there is no such thing here
	term       *terminal // of an interactive child
	pid        int
	begun      uint64 // the start of pid, on the scale of Identity
	started    time.Time
	exited     chan struct{} // the child has ended and is not yet collected
	open       atomic.Int32  // output streams that have not ended
	drained    chan struct{} // both output streams have ended
	readers    [2]*os.File
	stdin      *os.File

	one       sync.Mutex
	collected bool // the child's status was taken: its number is free
}

// Start prepares and launches a child. The error is a *SpawnError: nothing runs then.
func Start(c Command) (*Process, error) {
	p, err := Prepare(c)
	if err != nil {
		return nil, err
	}
	if err := p.Launch(c.Timeout); err != nil {
		return nil, err
	}
	return p, nil
}

// Prepare finds the executable and opens the streams, so that Launch has little left to do.
// The error is a *SpawnError. What is prepared must be launched or abandoned.
func Prepare(c Command) (*Process, error) {
	own.once.Do(adopt)
	executable, err := find(c.Executable, childDir(c.Dir), pathOf(c.Env))
	if err != nil {
		return nil, err
	}
	p := &Process{c: c, executable: executable, mark: markOf(c.Mark), exited: make(chan struct{}), drained: make(chan struct{})}
	if p.child, err = p.pipes(); err != nil {
		return nil, &SpawnError{NoResources, err}
	}
	p.cell = newCell(c.Mark)
	return p, nil
}

// Launch starts a prepared child, with a time-out that replaces the command's. The error is a *SpawnError: nothing runs then.
func (p *Process) Launch(timeout time.Duration) error {
	p.c.Timeout = timeout
	c := p.c
	attr := &os.ProcAttr{Dir: childDir(c.Dir), Env: append(c.Env[:len(c.Env):len(c.Env)], MarkVariable+"="+p.mark),
		Files: append(p.child[:len(p.child):len(p.child)], c.Files...), Sys: apart}
	if p.term != nil {
		attr.Sys = onTerminal
	}
	begun := identityOf(os.Getpid()).Start
	var err error
	p.proc, err = p.launch(append([]string{c.Executable}, c.Args...), attr)
	p.closeChild()
	if err != nil {
		p.closePipes()
		return spawnError(err)
	}
	p.pid, p.begun, p.started = p.proc.Pid, begun, time.Now()
	own.add(p.pid)
	p.follow()
	return nil
}

// launch starts the child in its cell. Where that fails it is tried without: if it starts then,
// it was the cell's fault, and no more are used.
func (p *Process) launch(argv []string, attr *os.ProcAttr) (*os.Process, error) {
	if p.cell == nil {
		return launch(p.executable, argv, attr)
	}
	started, used, failed := p.cell.launch(p.executable, argv, attr)
	if !used {
		var err error
		gone := errors.Is(failed, syscall.ENODEV) || errors.Is(failed, syscall.ENOENT) // somebody took the cell away
		if started, err = launch(p.executable, argv, attr); err == nil && !gone {
			p.cell.giveUp()
		}
		p.dropCell()
		return started, err
	}
	p.cell.launched()
	return started, nil
}

func (p *Process) dropCell() {
	p.cell.remove()
	p.cell = nil
}

// Abandon gives up a prepared child that was not launched.
func (p *Process) Abandon() {
	if p.proc != nil {
		return
	}
	p.closeChild()
	p.closePipes()
	p.dropCell()
}

func (p *Process) closeChild() {
	for _, f := range p.child {
		_ = f.Close()
	}
	p.child = nil
}

// apart puts the child into a session of its own: it has no terminal, a group that can be
// signalled as a whole, and no job control of a shell takes a descendant out of it.
var apart = &syscall.SysProcAttr{Setsid: true}

// launch retries a file that another thread's fork still holds open for writing.
func launch(executable string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	for attempt := 0; ; attempt++ {
		p, err := os.StartProcess(executable, argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) || attempt == 5 {
			return p, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Identity tells the child apart from a later process with the same pid.
func (p *Process) Identity() Identity { return identityOf(p.pid) }

// Wait blocks until the execution has ended: the child by itself, at its time-out, or because
// ctx ended, and then all that belongs to it. It must be called once.
func (p *Process) Wait(ctx context.Context) Exit {
	var e Exit
	var limit <-chan time.Time
	if p.c.Timeout > 0 {
		t := time.NewTimer(time.Until(p.started.Add(p.c.Timeout)))
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-p.exited:
	case <-limit:
		e.TimedOut = true
	case <-ctx.Done():
		e.Cancelled = true
	}
	forced := e.TimedOut || e.Cancelled
	if forced {
		p.end()
	}
	p.reap(&e)
	p.settle(&e, forced)
	own.remove(p.pid)
	p.dropCell()
	p.closePipes()
	<-p.drained
	p.c.Stdout.Trim()
	p.c.Stderr.Trim()
	e.Duration = time.Since(p.started)
	own.sweep()
	return e
}

// Signal sends a signal to the child and its group. It is false once the child was collected: the
// number may be another's then.
func (p *Process) Signal(s syscall.Signal) bool {
	p.one.Lock()
	defer p.one.Unlock()
	return !p.collected && syscall.Kill(-p.pid, s) == nil
}

// end asks the group to end and then makes it. The child is not collected before, so its
// group id is still its own.
func (p *Process) end() {
	if p.term != nil {
		_ = syscall.Kill(-p.pid, syscall.SIGHUP) // a shell on a terminal heeds nothing else
	}
	_ = syscall.Kill(-p.pid, syscall.SIGTERM)
	if within(p.exited, termGrace) {
		return
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	within(p.exited, killWait)
}

func (p *Process) reap(e *Exit) {
	select {
	case <-p.exited:
	default:
		// It sits in the kernel and cannot be ended now; collect it when it can.
		e.LeftoverAlive = append(e.LeftoverAlive, name(p.pid, filepath.Base(p.c.Executable)))
		go func() { <-p.exited; _, _ = p.proc.Wait() }()
		return
	}
	p.one.Lock()
	state, err := p.proc.Wait()
	p.collected = true
	p.one.Unlock()
	if err != nil {
		return
	}
	e.Reaped = true
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = signalName(status.Signal())
		return
	}
	code := state.ExitCode()
	e.Code = &code
}

// settle waits for the rest of the output and ends what outlived the child.
func (p *Process) settle(e *Exit, forced bool) {
	patience := waitDelay
	if forced {
		patience = 0
	}
	until := time.Now().Add(patience)
	within(p.drained, patience)
	for p.hasMembers() {
		if time.Now().Before(until) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		alive, killed := endMembers(p.match())
		e.LeftoverKilled = killed
		e.LeftoverAlive = append(e.LeftoverAlive, alive...)
		break
	}
	if p.cell == nil && !own.alone(p.pid) {
		// Which execution they fell from cannot be told.
		e.LeftoverAlive = append(e.LeftoverAlive, orphans(p.begun)...)
	}
	within(p.drained, waitDelay/3)
}

// match decides which processes belong to this execution.
func (p *Process) match() matcher {
	id := p.c.Mark
	m := matcher{sessions: map[int]uint64{p.pid: 0}, marks: func(mark string) bool { return carries(mark, id) }}
	switch {
	case within(p.drained, 0):
	case p.term != nil:
		m.terminal = p.term
	default:
		m.pipes = pipeNames(p.readers[:])
	}
	switch {
	case p.cell != nil:
		m.cells = []*cell{p.cell}
	case own.alone(p.pid):
		m.orphans = p.begun
	}
	return m
}

func within(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
