package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner"
	link "webcodex/runner/link/client"
	"webcodex/runner/wire"
)

// maxDirs bounds the directories named on a command line.
const maxDirs = wire.MaxProjects

// runnerFlags are the flags of `runner`.
type runnerFlags struct {
	server, code string
	durability   string
	config       string
	asJSON       bool
}

func runnerCommand() command {
	return command{
		name: "runner", args: "[DIR...]", max: maxDirs, short: "run work for a server elsewhere, in directories here",
		long: `Serves the directories to a server that runs on another machine or under another account
(webcodex serve --runner-listen HOST:PORT). The first time it needs a code, which the server's
owner makes with webcodex token create --kind runner --name NAME:

  webcodex runner --enroll wcr1_… [--server tls://HOST:7422]
  webcodex runner DIR…

--enroll makes this Runner's own key, which stays in its data directory, and has the server take
it; the code is spent then. "-" reads the code from standard input. From then on the Runner
connects, and connects again for ever when the link breaks: what runs goes on. It does nothing
that is not signed with the key of the server that made the code. Ctrl-C ends it: what runs is
ended, and its end is told first.`,
		setup: func(fs *flag.FlagSet) action {
			var f runnerFlags
			data := fs.String("data", "", "data `DIR` of the Runner; default: WEBCODEX_RUNNER_DATA, else beside the server's")
			config := configFlag(fs)
			asJSON := jsonFlag(fs)
			fs.StringVar(&f.server, "server", "", "the server's `URL`: tls://HOST:PORT or wss://HOST; nats:// and ws:// on loopback; default: that of the enrolment")
			fs.StringVar(&f.code, "enroll", "", "the one-time `CODE`, or - to read it from standard input")
			fs.StringVar(&f.durability, "durability", string(eventlog.Always), "what the Runner's journal survives, `MODE`: always a power cut, process kill -9")
			return func(ctx context.Context, s streams, args []string) error {
				f.config, f.asJSON = *config, *asJSON
				dir, err := runnerDataDir(*data)
				if err != nil {
					return err
				}
				return runRunner(ctx, s, f, dir, args)
			}
		},
	}
}

// runnerDataDir is where a Runner of its own keeps what it has.
func runnerDataDir(flagValue string) (string, error) {
	dir := flagValue
	if dir == "" {
		dir = os.Getenv("WEBCODEX_RUNNER_DATA")
	}
	if dir == "" {
		def, err := defaultDataDir()
		if err != nil {
			return "", err
		}
		dir = def + "-runner"
	}
	return filepath.Abs(dir)
}

func runRunner(ctx context.Context, s streams, f runnerFlags, dir string, args []string) error {
	if d := eventlog.Durability(f.durability); d != eventlog.Always && d != eventlog.Process {
		return usagef("--durability is always or process")
	}
	if f.server != "" {
		if err := link.CheckURL(f.server); err != nil {
			return err
		}
	}
	var roots []string
	for _, a := range args {
		root, err := resolveDir(a)
		if err != nil {
			return err
		}
		if err := keepApart(root, dir); err != nil {
			return err
		}
		roots = append(roots, root)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failf(exitFailed, "the data directory cannot be created: %w", short(err))
	}
	if err := ownDataDir(dir); err != nil {
		return err
	}
	release, err := lockRunner(dir)
	if err != nil {
		return err
	}
	defer release()
	logger := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if f.code != "" {
		e, err := enrolFrom(ctx, s, f, dir, logger)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.err, "webcodex: enrolled as %s at %s; the code is spent\n", e.Client, clean(e.URL))
		if len(roots) == 0 {
			return nil
		}
	}
	e, err := readEnrolment(dir, enrolmentFile)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("this Runner is enrolled nowhere: ask the server's owner for a code (`webcodex token create --kind runner --name NAME`), then `webcodex runner --enroll CODE`")
	}
	if err != nil {
		return err
	}
	if f.server != "" {
		e.URL = f.server
	}
	return serveRunner(ctx, s, f, dir, e, roots, logger)
}

func enrolFrom(ctx context.Context, s streams, f runnerFlags, dir string, logger *slog.Logger) (enrolment, error) {
	text := f.code
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(s.in, 4096))
		if err != nil {
			return enrolment{}, failf(exitFailed, "the code cannot be read: %v", short(err))
		}
		text = string(b)
	}
	return enrol(ctx, dir, text, f.server, logger)
}

// lockWait is how long a lock may still be held by what a dead Runner was about to start.
const lockWait = time.Second

// lockRunner keeps a second process out of a Runner's data directory, until it ends.
func lockRunner(dir string) (release func(), err error) {
	l, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, failf(exitFailed, "the data directory cannot be locked: %v", short(err))
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		if err = syscall.Flock(int(l.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return func() { l.Close() }, nil
		}
		if time.Now().After(end) {
			l.Close()
			return nil, failf(exitFailed, "another process uses this data directory: end it, or name another one with --data")
		}
	}
}

// runnerReady is the line of `runner --json` once the server has accepted it.
type runnerReady struct {
	Ready    bool           `json:"ready"`
	Client   event.ClientID `json:"client_id"`
	Server   string         `json:"server"`
	Projects []string       `json:"projects"`
	PID      int            `json:"pid"`
}

// serveRunner is one life of a Runner: it ends what a dead one left, connects, serves, drains.
func serveRunner(ctx context.Context, s streams, f runnerFlags, dir string, e enrolment, roots []string, logger *slog.Logger) (err error) {
	cfg, err := loadConfig(f.config, nil)
	if err != nil {
		return err
	}
	news := &runnerNews{s: s, client: e.Client, build: thisBuild().String()}
	r, resources, err := makeRunner(runner.Options{Dir: filepath.Join(dir, "runner"), Deny: []string{dir}, Client: e.Client, Server: e.Server,
		Fsync: f.durability != string(eventlog.Process), Told: news.hear}, cfg, logger)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.Close())
		resources.Close()
	}()
	ready := runnerReady{Ready: true, Client: e.Client, Server: e.URL, PID: os.Getpid(), Projects: []string{}}
	for _, root := range roots {
		if _, err := r.AddProject(root); err != nil {
			return err
		}
	}
	for _, p := range r.Projects() {
		ready.Projects = append(ready.Projects, event.ProjectRef{Client: e.Client, Project: p.ID}.String())
	}
	news.first = func() error {
		if f.asJSON {
			return printJSON(s.out, ready)
		}
		_, err := fmt.Fprintf(s.out, "webcodex runner %s is ready (pid %d)\n\n  server      %s\n  projects    %s\n", e.Client, ready.PID,
			clean(e.URL), clean(strings.Join(ready.Projects, "\n              ")))
		return err
	}
	conn, err := reach(ctx, s, e.remote(logger))
	if err != nil {
		return nil // ended before the server was there
	}
	defer conn.Close()
	return r.Serve(ctx, conn)
}

// reach connects to the server, however long that takes; an error says that ctx has ended.
func reach(ctx context.Context, s streams, to link.Remote) (*link.Conn, error) {
	said := ""
	for attempt := 1; ; attempt++ {
		conn, err := link.Dial(ctx, to)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if now := fault.As(err).Message; now != said {
			said = now
			fmt.Fprintf(s.err, "webcodex: %s; trying on\n", clean(now))
		}
		if !sleep(ctx, link.Pause(attempt)) {
			return nil, ctx.Err()
		}
	}
}

// runnerNews says in words what becomes of the Runner's hellos, each state once.
type runnerNews struct {
	s      streams
	client event.ClientID
	build  string
	first  func() error // at the first acceptance

	mu       sync.Mutex
	state    string
	accepted int
}

func (t *runnerNews) hear(reply wire.HelloReply, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := ""
	switch {
	case errors.Is(err, link.ErrUnsigned):
		state = link.ErrUnsigned.Error() + "; nothing that it asks is done"
	case err != nil:
		return // the link says itself what becomes of it
	case !reply.OK:
		if state = reply.Text; state == "" {
			state = "the server refused this Runner: " + reply.Reason
		}
		state += "; trying on"
	case t.accepted < 2:
		// The first lets it listen; at the second the server knows that it does.
		if t.accepted++; t.accepted < 2 {
			break
		}
		if err := t.first(); err != nil {
			fmt.Fprintf(t.s.err, "webcodex: %s\n", clean(oneLine(err)))
		}
		if reply.Build != t.build {
			fmt.Fprintf(t.s.err, "webcodex: the server is %s, this Runner %s; both speak protocol %d\n", clean(reply.Build), clean(t.build), wire.Protocol)
		}
	case t.state != "":
		fmt.Fprintln(t.s.err, "webcodex: the server has accepted this Runner again")
	}
	if state != "" && state != t.state {
		fmt.Fprintf(t.s.err, "webcodex: %s\n", clean(state))
	}
	t.state = state
}
