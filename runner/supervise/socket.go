package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"webcodex/internal/peercred"
)

// What is said on a Job's socket, a word a line: a Runner asks to follow or to stop, the
// supervisor says that it will, and to a follower that output has come. The connection ends with
// the supervisor.
const (
	wordFollow = "follow"
	wordStop   = "stop"
	wordOK     = "ok"
	wordOutput = "output"
)

// peers are the Runners that follow; there is one, or a newer one beside a dying one.
type peers struct {
	mu   sync.Mutex
	wake map[chan struct{}]bool
}

// output tells all followers soon; it never blocks.
func (p *peers) output() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ch := range p.wake {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (p *peers) add() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch := make(chan struct{}, 1)
	if p.wake == nil {
		p.wake = map[chan struct{}]bool{}
	}
	p.wake[ch] = true
	ch <- struct{}{}
	return ch
}

func (p *peers) remove(ch chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wake, ch)
	close(ch)
}

// listen serves the socket in the working directory, to this account alone.
func (s *supervisor) listen() (stop func(), err error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketName, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socketName, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	room := make(chan struct{}, maxPeers)
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			if uid, err := peercred.UID(c); err != nil || uid != os.Geteuid() {
				_ = c.Close()
				continue
			}
			select {
			case room <- struct{}{}:
				go func() {
					defer func() { _ = c.Close(); <-room }()
					s.serve(c)
				}()
			default:
				_ = c.Close()
			}
		}
	}()
	return func() { _ = l.Close() }, nil
}

func (s *supervisor) serve(c *net.UnixConn) {
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 0, 64), 64)
	for lines.Scan() {
		switch lines.Text() {
		case wordStop:
			s.cancel(errStop)
			if write(c, wordOK) != nil {
				return
			}
		case wordFollow:
			ch := s.peers.add()
			defer s.peers.remove(ch)
			go func() {
				for range ch {
					if write(c, wordOutput) != nil {
						_ = c.Close()
						return
					}
					time.Sleep(sayAgain)
				}
			}()
		default:
			return
		}
	}
}

func write(c net.Conn, word string) error {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := c.Write([]byte(word + "\n"))
	return err
}

// dial reaches the supervisor of a Job, and no other account's process.
func (j *Job) dial() (*net.UnixConn, error) {
	addr := filepath.Join(j.Dir, socketName)
	if runtime.GOOS == "linux" { // a deep directory does not fit into an address
		d, err := os.Open(j.Dir)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		addr = fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName)
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if uid, err := peercred.UID(c); err != nil || uid != os.Geteuid() {
		_ = c.Close()
		return nil, errors.Join(errors.New("another account's process answers"), err)
	}
	return c, nil
}

// Follow tells of output on the channel until the supervisor ends, which closes it. Close the
// connection to end it earlier.
func (j *Job) Follow() (changes <-chan struct{}, stop func(), err error) {
	c, err := j.dial()
	if err != nil {
		return nil, nil, err
	}
	if err := write(c, wordFollow); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	ch := make(chan struct{}, 1)
	go func() {
		defer close(ch)
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}()
	return ch, func() { _ = c.Close() }, nil
}

// Stop asks the supervisor to end the Job. It returns when that was heard.
func (j *Job) Stop() error {
	c, err := j.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := write(c, wordStop); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(handshake))
	_, err = bufio.NewReaderSize(c, 64).ReadString('\n')
	return err
}
