package shell

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/internal/proc"
)

// stream is one output stream of one command: a named pipe that this command alone has.
type stream struct {
	f    *os.File
	to   *proc.Tail
	over chan struct{} // closed when pump has returned
	eof  bool          // everybody has let go of it; set before over is closed
}

func newStream(f *os.File, to *proc.Tail) *stream {
	s := &stream{f: f, to: to, over: make(chan struct{})}
	go s.pump()
	return s
}

func (s *stream) pump() {
	defer close(s.over)
	buf := make([]byte, 32<<10)
	for {
		n, err := s.f.Read(buf)
		if n > 0 {
			s.to.Write(buf[:n])
		}
		if err != nil {
			s.eof = !errors.Is(err, os.ErrDeadlineExceeded)
			return
		}
	}
}

// finish takes what is in the pipe now and nothing after it. It is called when the command has
// ended: then what it wrote is in the pipe, and the pipe holds it in order (SHL-24).
func (s *stream) finish() {
	_ = s.f.SetReadDeadline(time.Unix(1, 0))
	<-s.over
	_ = s.f.SetReadDeadline(time.Time{})
	if s.eof {
		return
	}
	left := waiting(s.f)
	buf := make([]byte, 32<<10)
	for left > 0 {
		n, err := s.f.Read(buf[:min(left, len(buf))])
		s.to.Write(buf[:n])
		left -= n
		if err != nil {
			return
		}
	}
}

// waiting is how many bytes lie in a pipe.
func waiting(f *os.File) (n int) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), fionread) })
	return n
}

// discards reads on what earlier commands left writing, so that it is neither stopped nor shown:
// a server in the background may go on talking (SHL-24). Beyond maxDiscards the oldest is let go,
// and whoever writes to it is told by the system.
type discards struct {
	mu   sync.Mutex
	open []*os.File // oldest first
}

func (d *discards) add(s *stream) {
	if s.eof {
		_ = s.f.Close()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, s.f)
	if len(d.open) > maxDiscards {
		_ = d.open[0].Close() // its reader takes it out
	}
	go func() {
		_, _ = io.Copy(io.Discard, s.f)
		_ = s.f.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open = slices.DeleteFunc(d.open, func(f *os.File) bool { return f == s.f })
	}()
}

func (d *discards) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.open {
		_ = f.Close()
	}
}
