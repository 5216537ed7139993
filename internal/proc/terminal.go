package proc

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Why input is not taken.
var (
	ErrNotInteractive = errors.New("the process has no terminal")
	ErrEnded          = errors.New("the process has ended")
)

// terminal is the pseudo-terminal of an interactive execution, from the side that a person would
// sit at.
type terminal struct {
	master *os.File
	device uint64 // of the child's side
	inode  uint64
	number uint64 // that device's own number, which its processes have it by
	before modes  // as the child got it

	mu      sync.Mutex
	typed   int  // how often something was typed
	partial bool // the last of it has no line end
	waiting bool // as it was last told
	tell    func(waiting bool)
	poke    chan struct{} // something was typed
}

// modes are what tells that a program took the terminal over to ask for something.
type modes struct {
	canonical, echo bool
	eof             byte // the key that ends the input
}

// openTerminal makes a terminal and gives the child's side of it too.
func openTerminal(tell func(bool)) (*terminal, *os.File, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	t := &terminal{master: master, tell: tell, poke: make(chan struct{}, 1)}
	err = errors.Join(control(slave, setModes), pty.Setsize(master, &pty.Winsize{Rows: terminalRows, Cols: terminalColumns}))
	if err == nil {
		err = control(slave, func(fd int) error {
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil {
				return err
			}
			t.device, t.inode, t.number = uint64(st.Dev), st.Ino, uint64(st.Rdev)
			return nil
		})
	}
	if err == nil {
		t.before, err = t.modes()
	}
	if err != nil {
		_, _ = master.Close(), slave.Close()
		return nil, nil, err
	}
	return t, slave, nil
}

// control uses a file's descriptor without taking it out of the poller, as Fd does.
func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// setModes leaves line ends as they are: what is kept of the output reads like that of a run
// without a terminal.
func setModes(fd int) error {
	m, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	m.Oflag &^= unix.ONLCR
	m.Iflag |= unix.IUTF8
	return unix.IoctlSetTermios(fd, setTermios, m)
}

func (t *terminal) modes() (out modes, err error) {
	err = control(t.master, func(fd int) error {
		m, err := unix.IoctlGetTermios(fd, getTermios)
		if err == nil {
			out = modes{canonical: m.Lflag&unix.ICANON != 0, echo: m.Lflag&unix.ECHO != 0, eof: m.Cc[unix.VEOF]}
		}
		return err
	})
	return out, err
}

// foreground is the process group that the terminal listens to, 0 where there is none.
func (t *terminal) foreground() (group int) {
	_ = control(t.master, func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return max(group, 0)
}

// Input types text on the terminal of an interactive process, and then the key that ends the
// input if eof is set: on a terminal that reads lines it ends what the program reads now, a
// program that reads keys gets it as a key. taken is how many bytes of text the terminal took
// until inputWait was over. Errors: ErrNotInteractive, ErrEnded.
func (p *Process) Input(text []byte, eof bool) (taken int, err error) {
	t := p.term
	if t == nil {
		return 0, ErrNotInteractive
	}
	if within(p.exited, 0) {
		return 0, ErrEnded
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.typed++
	t.report(false)
	defer func() {
		select {
		case t.poke <- struct{}{}:
		default:
		}
	}()
	_ = t.master.SetWriteDeadline(time.Now().Add(inputWait))
	if len(text) > 0 {
		if taken, err = t.master.Write(text); taken > 0 {
			t.partial = text[taken-1] != '\n' && text[taken-1] != '\r'
		}
	}
	if err == nil && eof {
		err = t.end()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return taken, nil // it is full, and that is told by the count
	}
	if err != nil {
		err = ErrEnded
	}
	return taken, err
}

// end types the key that ends the input. After an unfinished line the first one ends that line.
func (t *terminal) end() error {
	m, err := t.modes()
	if err != nil {
		return err
	}
	if m.eof == 0 { // the terminal has no such key
		m.eof = 'D' - '@'
	}
	keys := []byte{m.eof}
	if m.canonical && t.partial {
		keys = append(keys, m.eof)
	}
	t.partial = false
	_, err = t.master.Write(keys)
	return err
}

// report tells whether the process waits for input, where that changed. t.mu is held.
func (t *terminal) report(waiting bool) {
	if t.waiting == waiting {
		return
	}
	t.waiting = waiting
	if t.tell != nil {
		t.tell(waiting)
	}
}

// onTerminal makes the child's first file its terminal and the child the leader of its session.
var onTerminal = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}

// watch looks at the terminal until the process has ended, and tells when what runs on it begins
// or ceases to wait for input.
func (p *Process) watch(c *cell) {
	t := p.term
	pause := glanceEvery
	last, since := p.glance(c), time.Now()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-p.exited:
			t.mu.Lock()
			t.report(false)
			t.mu.Unlock()
			return
		case <-t.poke:
			since = time.Now()
		case <-timer.C:
			now := p.glance(c)
			t.mu.Lock()
			if was := t.waiting; t.typed == now.typed {
				if t.report(waits(last, now)); t.waiting != was {
					since = time.Now()
				}
			}
			t.mu.Unlock()
			last = now
		}
		// What has not changed for long is looked at less often.
		if pause = glanceEvery; time.Since(since) > steadyAfter {
			pause = glanceSteady
		}
		timer.Reset(pause)
	}
}
