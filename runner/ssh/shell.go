package ssh

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/shell"
	"webcodex/runner/wire"
)

const (
	// answerTime bounds how long a shell may take to begin a command, and to send what it printed.
	answerTime = 15 * time.Second
	// shellEndTime is how long a shell may take to end after its input has, before it is killed.
	shellEndTime = 3 * time.Second
	// maxAnswer bounds one stream of an answer in bytes: what is kept, and what may have come
	// while it was sent.
	maxAnswer = wire.MaxShellOutputBytes + 8<<20
	// maxLine bounds a line of the channel that is no output.
	maxLine = 4 << 10
)

// remoteShell is a persistent shell on a resource, with one channel of its own (SSH-17).
type remoteShell struct {
	c       *Channel
	token   string // of its keeper
	sh, dir string // there
	frames  chan frame
	gone    chan struct{}
	once    sync.Once
	late    time.Duration // how long an interrupted command may take to end
	sending sync.Mutex    // one at a time writes to the channel, or ends that

	mu     sync.Mutex
	expect string // the token of the next frame; empty: none is
	number int    // of the command
	exit   shell.Exit
}

// Generation implements shell.Remote.
func (r *Resources) Generation(name string) (string, *fault.Error) {
	to, f := r.find(name)
	return to.generation, f
}

// OpenShell implements shell.Remote. It shares the connection of the same Session, resource and
// settings, and never makes a second one for it (SSH-17).
func (r *Resources) OpenShell(ctx context.Context, in shell.RemoteIn) (shell.Engine, string, string, *fault.Error) {
	if !ValidCwd(in.Cwd) {
		return nil, "", "", notStarted(fault.New(fault.RunnerRefused, "the directory is too long or holds a control character").
			WithReason("malformed").WithField("cwd"))
	}
	c, f := r.Open(ctx, in.Session, in.Resource)
	if f != nil {
		return nil, "", "", f
	}
	s, f := startShell(ctx, c, in, cmp.Or(r.o.patient, shell.Recovery))
	if f != nil {
		return nil, "", "", f
	}
	return s, in.Cwd, c.settings, nil
}

func startShell(ctx context.Context, c *Channel, in shell.RemoteIn, late time.Duration) (*remoteShell, *fault.Error) {
	s := &remoteShell{c: c, token: randomToken(), frames: make(chan frame, 1), gone: make(chan struct{}), late: late}
	cwd := in.Cwd
	if cwd == "" {
		cwd = c.cwd
	}
	ready := make(chan []string, 1)
	go ssh.DiscardRequests(c.requests)
	go func() { _, _ = io.Copy(io.Discard, c.channel.Stderr()) }()
	refused := make(chan error, 1)
	go func() {
		ok, err := c.channel.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{keeperCommand(s.token, cwd, in.Dialect)}))
		if err == nil && !ok {
			err = errors.New("refused")
		}
		if err != nil {
			refused <- err
			return
		}
		go s.listen(ready)
	}()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var f *fault.Error
	select {
	case words := <-ready:
		if f = s.begun(words); f == nil {
			if f = s.settle(ctx); f == nil {
				return s, nil
			}
		}
	case err := <-refused:
		close(s.gone)
		s.c.Close()
		return nil, connectFault("exec_refused", false, err)
	case <-s.gone:
		f = noAnswer()
	case <-ctx.Done():
		f = noAnswer()
	}
	go s.Close() // what is left of it there ends with its channel
	return nil, f
}

func noAnswer() *fault.Error {
	return notStarted(fault.New(fault.CommandSpawnFailed, "the shell did not answer on the resource").WithField("shell").WithReason("no_answer"))
}

// begun reads the keeper's first words.
func (s *remoteShell) begun(words []string) *fault.Error {
	switch {
	case len(words) == 3 && words[0] == wordRun:
		s.sh, s.dir = words[1], words[2]
		return nil
	case len(words) == 2 && words[0] == wordCwd:
		return cwdFault(words[1])
	case len(words) == 2 && words[0] == wordShell:
		return notStarted(fault.New(fault.CommandSpawnFailed, "the shell was not found on the resource").WithField("shell").WithReason("not_found"))
	case len(words) == 2 && words[0] == wordPlace:
		return notStarted(fault.New(fault.CommandSpawnFailed, "the resource has no room for the files of a persistent shell").WithField("shell").WithReason(proc.NoResources))
	}
	return noAnswer()
}

// settle makes the shell one that takes commands.
func (s *remoteShell) settle(ctx context.Context) *fault.Error {
	if s.write(shell.Settle+"\n") == nil && s.say(answerLine) && s.await(ctx) != nil {
		return nil
	}
	return noAnswer()
}

func randomToken() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // it never fails
	return hex.EncodeToString(raw)
}

// write sends lines to the shell; a connection that takes nothing is not waited for.
func (s *remoteShell) write(line string) error {
	return s.send(fed(line))
}

// send sends the keeper something.
func (s *remoteShell) send(line string) error {
	done := make(chan error, 1)
	go func() {
		s.sending.Lock()
		defer s.sending.Unlock()
		_, err := io.WriteString(s.c.channel, line)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-s.gone:
		return io.ErrClosedPipe
	case <-time.After(answerTime):
		return context.DeadlineExceeded
	}
}

// say expects an answer and sends the line that makes it.
func (s *remoteShell) say(line func(token, sh, dir string, number int) string) bool {
	s.mu.Lock()
	s.expect = randomToken()
	s.number++
	text := line(s.expect, s.sh, s.dir, s.number)
	s.mu.Unlock()
	return s.write(text) == nil
}

func (s *remoteShell) await(ctx context.Context) *frame {
	select {
	case f := <-s.frames:
		return &f
	case <-ctx.Done():
		return nil
	case <-s.gone:
		select { // the last words of one that ended
		case f := <-s.frames:
			return &f
		default:
			return nil
		}
	}
}

// Execute implements shell.Engine.
func (s *remoteShell) Execute(ctx context.Context, command string, stdout, stderr *proc.Tail) shell.Ended {
	begins := func(token, _, dir string, _ int) string { return beginLine(token, dir, command) }
	end := shell.Ended{Started: true} // it was sent; only what follows proves otherwise
	late, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	var f *frame
	if s.say(begins) {
		if f = s.await(late); f != nil && !f.final && s.say(answerLine) {
			f = s.follow(ctx, &end)
		}
	}
	if f == nil {
		if !end.Late { // how it came that it is gone is heard soon
			s.goneWithin(answerTime)
		}
		return end
	}
	for i, to := range []*proc.Tail{stdout, stderr} {
		to.Skip(f.streams[i].total - int64(len(f.streams[i].text)))
		to.Write(f.streams[i].text)
	}
	if f.final {
		s.goneWithin(answerTime)
		return end
	}
	end.Status, end.InStep = &f.status, true
	return end
}

// follow waits for the answer. At ctx's end the command is interrupted, once: what comes after it
// must not be.
func (s *remoteShell) follow(ctx context.Context, end *shell.Ended) *frame {
	if f := s.await(ctx); f != nil || ctx.Err() == nil {
		return f
	}
	end.Late = true
	if s.send(interrupt+"\n") != nil {
		return nil
	}
	within, cancel := context.WithTimeout(context.Background(), s.late)
	defer cancel()
	f := s.await(within)
	if f != nil && !f.final && !s.inStep() {
		return nil
	}
	return f
}

// inStep proves after an interrupt that the shell hears: where the command ended by itself at that
// moment, the interrupt may have met the shell and cost it a line.
func (s *remoteShell) inStep() bool {
	for range 2 {
		within, cancel := context.WithTimeout(context.Background(), s.late)
		f := (*frame)(nil)
		if s.say(answerLine) {
			f = s.await(within)
		}
		cancel()
		if f != nil {
			return !f.final
		}
	}
	return false
}

func (s *remoteShell) signal(sig ssh.Signal) {
	go func() {
		_, _ = s.c.channel.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{string(sig)}))
	}()
}

// Gone implements shell.Engine.
func (s *remoteShell) Gone() <-chan struct{} { return s.gone }

func (s *remoteShell) goneWithin(d time.Duration) bool {
	select {
	case <-s.gone:
		return true
	case <-time.After(d):
		return false
	}
}

// Exit implements shell.Engine.
func (s *remoteShell) Exit() shell.Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exit
}

// Close implements shell.Engine. The keeper ends everything when the channel's input does. One
// that does not is killed, and what it left may live.
func (s *remoteShell) Close() {
	s.once.Do(func() {
		go func() {
			s.sending.Lock()
			defer s.sending.Unlock()
			_ = s.c.channel.CloseWrite()
		}()
		if s.goneWithin(shellEndTime) {
			return
		}
		s.signal(ssh.SIGKILL)
		if s.goneWithin(killGrace) {
			return
		}
		go func() { _ = s.c.channel.Close() }()
		if !s.goneWithin(drainQuiet) {
			s.c.give(true)
		}
	})
	if s.goneWithin(drainQuiet) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exit.Unknown = true
}
