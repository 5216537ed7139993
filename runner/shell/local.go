package shell

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/internal/proc"
)

// local is a shell of this machine. It reads its script, line for line, from a pipe that is its
// standard input, and answers on descriptor 9, which no command has.
type local struct {
	p       *proc.Process
	dir     string   // where the named pipes of a command are for a moment
	script  *os.File // our end of its input
	gone    chan struct{}
	damaged chan struct{} // closed when something came that nobody had asked for
	frames  chan int      // statuses of the tokens that were expected

	mu     sync.Mutex
	expect string // the token of the command that runs; empty: none does

	patient time.Duration // Recovery, or what a test gives a busy machine

	kill context.CancelFunc
	exit proc.Exit // once gone
	rest discards
	once sync.Once
}

// launch is what a local shell is started with.
type launch struct {
	mark    string // of all that it starts
	program string
	dir     *os.File // its working directory
	env     []string
	pipes   string // an own directory for named pipes
	started func(proc.Identity)
	patient time.Duration // 0: Recovery
}

// become is run by the program itself and makes it the shell: interactive, so that an error or an
// interrupt ends a command and not the shell, but without a terminal, a prompt, login files, line
// editing, history or job control.
const become = `exec "$0" ${BASH_VERSION:+--norc --noprofile --noediting} -i <&3 9>&4 3<&- 4>&-`

// Settle is the first line of every shell: see become.
const Settle = `PS1= PS2=; set +m; case ${BASH_VERSION:+b} in b) set +H; set +o history; unset HISTFILE ;; esac`

// startLocal starts a shell and waits until it answers. The error is a *proc.SpawnError where
// nothing runs.
func startLocal(ctx context.Context, l launch) (*local, error) {
	in, script, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	control, out, err := os.Pipe()
	if err != nil {
		_, _ = in.Close(), script.Close()
		return nil, err
	}
	defer func() { _, _ = in.Close(), out.Close() }()
	p, err := proc.Start(proc.Command{Mark: l.mark, Executable: l.program, Args: []string{"-c", become, l.program}, Dir: l.dir, Env: l.env,
		Stdout: proc.NewTail(maxFrame), Stderr: proc.NewTail(maxFrame), Files: []*os.File{in, out}})
	if err != nil {
		_, _ = script.Close(), control.Close()
		return nil, err
	}
	if l.started != nil {
		l.started(p.Identity())
	}
	living, kill := context.WithCancel(context.Background())
	s := &local{p: p, dir: l.pipes, script: script, frames: make(chan int, 1), damaged: make(chan struct{}), gone: make(chan struct{}), kill: kill,
		patient: cmp.Or(l.patient, Recovery)}
	go func() {
		s.exit = p.Wait(living)
		kill()
		_ = s.script.Close()
		s.rest.close()
		close(s.gone)
	}()
	go s.listen(control)
	token := s.nextToken()
	if s.write(Settle+"\n"+answer(token)) != nil || s.await(ctx) == nil {
		s.Close()
		return nil, errNoAnswer
	}
	return s, nil
}

var errNoAnswer = errors.New("the shell did not answer")

func newToken() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // it never fails
	return hex.EncodeToString(raw)
}

// nextToken is the one that the next frame has to have.
func (s *local) nextToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expect = newToken()
	return s.expect
}

// answer is the line with which the shell tells a status on its control channel. It is given to
// the shell only when the command has begun, behind it in the pipe: nothing that runs by then has
// seen the token.
func answer(token string) string {
	return `\command printf '%s %d\n' ` + token + ` "$?" >&9` + "\n"
}

// listen reads the control channel until the shell has ended. What comes unasked is damage, and
// a damaged shell is ended: nobody knows any more what its frames mean.
func (s *local) listen(control *os.File) {
	defer func() { _ = control.Close() }()
	go func() { <-s.gone; _ = control.Close() }()
	lines := bufio.NewReaderSize(control, maxFrame)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) == 0 && err != nil {
			return // it has ended, or is ending
		}
		if !s.take(string(line)) {
			close(s.damaged)
			s.kill()
			return
		}
	}
}

// take accepts a frame: nothing but the token that is expected and a status, once.
func (s *local) take(frame string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := strings.CutPrefix(frame, s.expect+" ")
	status, err := strconv.Atoi(strings.TrimSuffix(text, "\n"))
	if s.expect == "" || !ok || err != nil || frame != s.expect+" "+strconv.Itoa(status)+"\n" {
		return false
	}
	s.expect = ""
	s.frames <- status
	return true
}

// await waits for the frame that is expected; nil: it did not come, or something else did.
func (s *local) await(ctx context.Context) *int {
	select {
	case status := <-s.frames:
		return &status
	case <-s.damaged:
	case <-s.gone:
	case <-ctx.Done():
	}
	return nil
}

func (s *local) write(line string) error {
	_ = s.script.SetWriteDeadline(time.Now().Add(openWait))
	_, err := s.script.WriteString(line)
	return err
}

// Execute implements Engine.
func (s *local) Execute(ctx context.Context, command string, stdout, stderr *proc.Tail) Ended {
	out, errs := newPipe(s.dir), newPipe(s.dir)
	defer out.drop()
	defer errs.drop()
	if out == nil || errs == nil {
		return Ended{InStep: true}
	}
	// The redirections are of this command alone, whatever it does to its own descriptors.
	line := `\command eval ` + Quote(command) + ` </dev/null >` + Quote(out.path) + ` 2>` + Quote(errs.path) + " 9>&-\n"
	if err := s.write(line); err != nil {
		s.goneWithin(openWait)
		return Ended{Started: !errors.Is(err, syscall.EPIPE)}
	}
	if !s.opened(out, errs) {
		return Ended{Started: true}
	}
	if s.write(answer(s.nextToken())) != nil {
		s.goneWithin(openWait) // it has ended meanwhile; what it wrote is there
	}
	streams := []*stream{newStream(out.take(), stdout), newStream(errs.take(), stderr)}
	out.drop() // their names are for nobody else
	errs.drop()
	end := s.follow(ctx)
	for _, one := range streams {
		one.finish()
		s.rest.add(one)
	}
	return end
}

func gone(e Engine) bool {
	select {
	case <-e.Gone():
		return true
	default:
		return false
	}
}

// opened waits until the shell has opened both pipes, which it does where it begins the command.
func (s *local) opened(pipes ...*pipe) bool {
	late := time.After(openWait)
	for _, p := range pipes {
		select {
		case <-p.opened:
		case <-s.gone:
			p.release() // it may have been opened all the same
		case <-late:
			return false
		}
		if p.f == nil {
			return false
		}
	}
	return true
}

// follow waits for the end of the command.
func (s *local) follow(ctx context.Context) Ended {
	end := Ended{Started: true}
	if end.Status = s.await(ctx); end.Status != nil {
		end.InStep = true
		return end
	}
	if ctx.Err() == nil || gone(s) {
		return end
	}
	end.Late = true
	// Background commands of a shell without job control do not hear an interrupt.
	for _, patience := range []time.Duration{AgainAfter, s.patient - AgainAfter} {
		s.p.Signal(syscall.SIGINT)
		within, cancel := context.WithTimeout(context.Background(), patience)
		end.Status = s.await(within)
		over := within.Err() != nil
		cancel()
		if end.Status != nil || !over {
			break
		}
	}
	end.InStep = end.Status != nil && s.inStep()
	return end
}

// inStep proves after an interrupt that the shell hears: where the command ended by itself at that
// moment, the interrupt may have met the shell and cost it a line.
func (s *local) inStep() bool {
	for range 2 {
		if s.write(answer(s.nextToken())) != nil {
			return false
		}
		within, cancel := context.WithTimeout(context.Background(), s.patient)
		status := s.await(within)
		cancel()
		if status != nil {
			return true
		}
	}
	return false
}

// Gone implements Engine.
func (s *local) Gone() <-chan struct{} { return s.gone }

// Exit implements Engine.
func (s *local) Exit() Exit {
	select {
	case <-s.damaged:
		return Exit{Damaged: true}
	default:
		return Exit{Code: s.exit.Code}
	}
}

// Close implements Engine. An idle shell ends when its input does; a busy one, and what runs in it,
// is asked and then made to.
func (s *local) Close() {
	s.once.Do(func() {
		_ = s.script.Close()
		if !s.busy() && s.goneWithin(closeGrace) {
			return
		}
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL} {
			s.p.Signal(sig)
			if s.goneWithin(closeGrace) {
				return
			}
		}
		s.kill()
	})
	<-s.gone
}

func (s *local) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expect != ""
}

func (s *local) goneWithin(d time.Duration) bool {
	select {
	case <-s.gone:
		return true
	case <-time.After(d):
		return false
	}
}

// pipe is a named pipe that the shell is to open.
type pipe struct {
	path   string
	opened chan struct{} // closed when the open has returned
	f      *os.File      // our end, once opened; nil: it failed, or was taken
}

// newPipe makes a named pipe and waits for its writer in the background; nil: it cannot.
func newPipe(dir string) *pipe {
	p := &pipe{path: filepath.Join(dir, newToken()), opened: make(chan struct{})}
	if unix.Mkfifo(p.path, 0o600) != nil {
		return nil
	}
	go func() {
		defer close(p.opened)
		p.f, _ = os.OpenFile(p.path, os.O_RDONLY, 0)
	}()
	return p
}

// take gives our end of an opened pipe away.
func (p *pipe) take() *os.File {
	f := p.f
	p.f = nil
	return f
}

// release lets the open return where no writer comes: one comes that is gone at once.
func (p *pipe) release() {
	for {
		select {
		case <-p.opened:
			return
		default:
		}
		if fd, err := unix.Open(p.path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Close(fd)
		}
		time.Sleep(time.Millisecond)
	}
}

// drop takes the name away, and our end where nobody took it.
func (p *pipe) drop() {
	if p == nil {
		return
	}
	p.release()
	_ = os.Remove(p.path)
	if p.f != nil {
		_ = p.f.Close()
	}
}
