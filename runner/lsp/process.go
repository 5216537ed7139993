package lsp

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/internal/sandbox"
)

// pipes are the two streams of a server as one.
type pipes struct {
	io.Reader
	io.WriteCloser
	close func() error
}

// Close implements io.Closer.
func (p pipes) Close() error { return p.close() }

// start runs the program and shakes hands. cache is the one directory in which it may write.
func (p *provider) start(ctx context.Context, program, cache string) error {
	cmd := exec.Command(program, p.kind.args...)
	cmd.Dir, cmd.Env = p.root, environment(cache)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = exitWait
	in, err := cmd.StdinPipe()
	if err != nil {
		return unstarted(p.kind, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return unstarted(p.kind, err)
	}
	if err := sandbox.StartWith(cmd, sandbox.Options{Write: []string{cache}}); err != nil {
		return unstarted(p.kind, err)
	}
	p.cmd = cmd
	stream := jsonrpc2.NewBufferedStream(pipes{out, in, func() error { _ = in.Close(); return out.Close() }}, codec{})
	p.conn = jsonrpc2.NewConn(context.WithoutCancel(ctx), stream, p)
	go func() {
		defer close(p.dead)
		<-p.conn.DisconnectNotify()
		p.reap()
	}()
	if err := p.initialize(ctx); err != nil {
		p.stop()
		return err
	}
	return nil
}

func unstarted(k *kind, err error) error {
	return fault.Wrap(err, fault.LSPServerUnavailable, "%s could not be started", k.name)
}

// environment lets a server find its tools and what is downloaded already, and nothing else; what it
// would write goes where it may.
func environment(cache string) []string {
	env := proc.Environment(os.Environ(), []string{proc.Helper, "XDG_CACHE_HOME=" + cache, "TMPDIR=" + cache,
		"GOCACHE=" + filepath.Join(cache, "go-build"), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off",
		"CARGO_TARGET_DIR=" + filepath.Join(cache, "cargo"), "CARGO_NET_OFFLINE=true", "npm_config_offline=true"})
	return env
}

// stop asks the server to end and then ends it, and waits until it is gone.
func (p *provider) stop() {
	p.mu.Lock()
	again := p.stopped
	p.stopped = true
	p.mu.Unlock()
	if !again {
		ctx, cancel := context.WithTimeout(context.Background(), exitWait)
		if p.conn.Call(ctx, "shutdown", nil, nil) == nil {
			_ = p.conn.Notify(ctx, "exit", nil)
		}
		cancel()
		_ = p.conn.Close()
	}
	<-p.dead
}

// reap ends the whole session of the server once it no longer speaks, and collects it.
func (p *provider) reap() {
	pid := p.cmd.Process.Pid
	ended := make(chan struct{})
	go func() { proc.WaitExit(pid); close(ended) }()
	select {
	case <-ended:
	case <-time.After(exitWait):
	}
	// Not collected before, so its group is still its own.
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	<-ended
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
}
