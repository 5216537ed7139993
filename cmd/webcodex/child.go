package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of a server process that another of our processes drives.
const (
	childReady   = 2 * time.Minute // recovery of what a killed one left included
	childStop    = time.Minute
	maxChildText = 64 << 10
)

// child is a real server in a process of its own.
type child struct {
	cmd   *exec.Cmd
	ready ready
	line  []byte // its ready line as it printed it
	// took is the time from the process's start to its ready line.
	took time.Duration
	said *lastBytes
	done chan struct{} // closed when the process has ended
	err  error         // of the process; set before done is closed
}

// startChild runs `up --json` and waits until it is ready. env is added to this process's.
func startChild(ctx context.Context, exe string, env []string, args ...string) (*child, error) {
	return startProgram(ctx, exe, env, append([]string{"up", "--json"}, args...)...)
}

// startProgram runs a command that prints one line of JSON when it is ready.
func startProgram(ctx context.Context, exe string, env []string, args ...string) (*child, error) {
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), env...)
	// A group of its own: Ctrl-C at the terminal is for us, we end the child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c := &child{cmd: cmd, said: &lastBytes{}, done: make(chan struct{})}
	cmd.Stderr = c.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", short(err))
	}
	line := make(chan error, 1)
	go func() {
		b, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			c.line = b
			err = json.Unmarshal(b, &c.ready)
		}
		c.took = time.Since(began)
		line <- err
		_, _ = io.Copy(io.Discard, out)
		c.err = cmd.Wait()
		close(c.done)
	}()
	t := time.NewTimer(childReady)
	defer t.Stop()
	select {
	case err = <-line:
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.C:
		err = errors.New("it was not ready in time")
	}
	if err != nil || !c.ready.Ready {
		c.kill()
		return nil, fmt.Errorf("the server did not start: %s", c.said.lastLine(err))
	}
	return c, nil
}

// kill ends the process as a crash would: SIGKILL, no chance to say or write anything.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// stop asks the process to end and wants exit status 0.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	t := time.NewTimer(childStop)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
		c.kill()
		return errors.New("the server did not end in time")
	}
	if c.err != nil {
		return fmt.Errorf("the server ended badly: %w; %s", c.err, c.said.lastLine(nil))
	}
	return nil
}

// lastBytes keeps the end of what a process wrote to stderr.
type lastBytes struct {
	mu sync.Mutex
	b  []byte
}

func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	if over := len(l.b) - maxChildText; over > 0 {
		l.b = l.b[over:]
	}
	return len(p), nil
}

func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.TrimSpace(l.b))
}

// lastLine is the last thing it said, or the error where it said nothing.
func (l *lastBytes) lastLine(err error) string {
	s := l.String()
	if s == "" {
		if err != nil {
			return err.Error()
		}
		return "it said nothing"
	}
	return strings.TrimPrefix(s[strings.LastIndexByte(s, '\n')+1:], "webcodex: ")
}
