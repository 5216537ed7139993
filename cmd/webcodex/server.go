package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/aggregate"
	"webcodex/commands/attention"
	"webcodex/commands/call"
	"webcodex/commands/execution"
	"webcodex/commands/history"
	"webcodex/commands/material"
	"webcodex/commands/peer"
	projects "webcodex/commands/project"
	"webcodex/commands/retention"
	shelltools "webcodex/commands/shell"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/token"
	"webcodex/mcp"
	principals "webcodex/projections/access"
	registered "webcodex/projections/project"
	removed "webcodex/projections/retention"
	"webcodex/projections/session"
	"webcodex/runner"
	"webcodex/runner/ssh"
)

// server is the parts of one life, wired together.
type server struct {
	dir      string
	instance event.InstanceID
	started  time.Time
	logger   *slog.Logger
	settings settings
	access   *mcp.Access
	tokens   *principals.Tokens
	second   *access.Tokens // the owner's commands on second principals
	public   string

	log       *eventlog.Log
	writer    *aggregate.Writer // what everything of this process decides with
	models    *models
	store     *session.Store
	known     *registered.Store
	fleet     *execution.Fleet
	runner    *runner.Runner // of this process; nil where it has none
	resources *ssh.Resources
	others    *access.Runners // the owner's commands on Runners of other processes
	identity  *identity       // who this server is to them
	runnersAt eventlog.RunnerAddrs
	kernel    *call.Kernel
	edge      *mcp.Server
	// profile is the guidance of hosts that tell none of their own.
	profile string

	refs       *principals.Refs    // what ~sN and ~pN stand for
	tombstones *removed.Tombstones // what is left of removed Sessions
	remover    *retention.Remover
	pruner     *history.Pruner
	removing   sync.WaitGroup // what a start removes
	lostKey    bool           // there were Sessions, and digest.key had to be made

	runnerStop context.CancelFunc // nil until the Runner serves
	runnerDone chan struct{}      // closed when the Runner has stopped serving

	tcpListener, controlListener net.Listener
	tcp, control                 *http.Server
	use                          *activity
	// ending is closed when nobody is served any more.
	ending chan struct{}
}

// openServer takes the lock, opens the log and connects the Runner of this process, if there is
// a root to serve. What is opened when it fails is closed again.
func openServer(ctx context.Context, s streams, f upFlags, dir, root string) (_ *server, err error) {
	srv := &server{dir: dir, instance: event.NewInstanceID(), started: time.Now(),
		logger: slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		use:    newActivity(), ending: make(chan struct{})}
	m := newModels(dir, f.cfg.HotSessions, srv.logger)
	srv.models, srv.store, srv.known, srv.tokens, srv.refs, srv.tombstones = m, m.sessions, m.known, m.tokens, m.refs, m.tombstones
	listen, err := srv.listenFor(f.cfg.Runners)
	if err != nil {
		return nil, err
	}
	srv.log, err = eventlog.Open(ctx, eventlog.Options{Dir: dir, Durability: f.cfg.Durability, Reason: f.reason(), Server: srv.instance,
		Now: time.Now, Logger: srv.logger, Base: m.keeper, Witness: witness(ctx, dir), MaxBytes: f.cfg.LogMaxBytes, ScrubEvery: f.cfg.ScrubInterval, ScrubRate: f.cfg.scrubRate(),
		Runners: listen, Faults: f.faults})
	if err != nil {
		return nil, err
	}
	srv.writer = aggregate.NewWriter(srv.log, time.Now)
	m.serve(srv.log)
	defer func() {
		if err != nil {
			err = errors.Join(err, srv.close())
		}
	}()
	if srv.settings, err = loadSettings(dir); err != nil {
		return nil, err
	}
	if srv.access, err = mcp.OpenAccess(dir, !srv.store.Any()); err != nil {
		return nil, err
	}
	srv.admitSecond()
	srv.newOthers(f.cfg.Runners)
	if err = srv.startFleet(f.cfg.Runners); err != nil {
		return nil, err
	}
	if root != "" {
		if err = srv.startRunner(ctx, f, root); err != nil {
			return nil, err
		}
	}
	srv.remover = retention.New(retention.Options{Writer: srv.writer, Sessions: srv.store, Tombstones: srv.tombstones,
		Limit: f.cfg.RetainedSessions, Logger: srv.logger})
	srv.pruner = newPruner(srv.log, srv.writer, m, f.cfg.History.policy(), history.CarryRate, srv.logger)
	tokens, err := srv.tokenKeys()
	if err != nil {
		return nil, err
	}
	cfg := call.Config{Windows: m.windows, Tokens: tokens, Epoch: srv.log.Epoch, Log: srv.log, Writer: srv.writer, Sessions: srv.store, Refs: srv.refs, Tombstones: srv.tombstones, External: m.external, OnClosed: srv.remover.Closed, OnClosing: shelltools.OnClosing(srv.fleet, srv.logger), Fleet: srv.fleet, Server: srv.instance, Now: time.Now, Logger: srv.logger,
		Info: func() call.ServerInfo {
			return call.ServerInfo{Version: thisBuild().Version, Build: thisBuild().String(), StartedAt: srv.started, Log: srv.log.Status()}
		}}
	if !f.asJSON {
		var one sync.Mutex
		cfg.OnCall = func(l call.Line) {
			one.Lock()
			defer one.Unlock()
			printCall(s, l)
		}
	}
	srv.profile = f.cfg.HostProfile
	peers := &peer.Peers{}
	cfg.Loop = peers.Loop
	cfg.Ambient = []call.Ambient{attention.New(peers.Affine), peers.Ambient, material.New(material.Options{Linked: peers.Linked})}
	srv.kernel = call.NewKernel(cfg)
	return srv, nil
}

// tokenKeys seal what callers hold of boards; they outlive a restart (MSG-22).
func (s *server) tokenKeys() (*token.Keys, error) {
	secret, err := s.fleet.Derive("webcodex.tokens.v1")
	if err != nil {
		return nil, err
	}
	return token.New(secret)
}

// admitSecond lets in who holds a token of the log, besides the owner.
func (s *server) admitSecond() {
	s.second = access.NewTokens(s.writer, s.tokens, s.known.Known, s.access.Principal().Actor, time.Now)
	s.access.Admit(mcp.Second{Tokens: s.tokens, Now: time.Now, Intact: func() error {
		_, err := s.log.Head(event.AccessAggregate())
		return err
	}})
}

// startFleet hears Runners: that of this process, and those that were let in from outside.
func (s *server) startFleet(c RunnersConfig) error {
	bus, err := s.log.ServerBus()
	if err != nil {
		return err
	}
	actor := s.access.Principal().Actor
	actor.Credential = "runner"
	registrar := projects.NewRegistrar(s.writer, s.known, actor)
	s.fleet, err = execution.New(execution.Options{Bus: bus, Dir: s.dir, Server: s.instance, Now: time.Now, Logger: s.logger,
		Known: s.known.Known, Register: registrar.Register,
		Remotes: execution.Remotes{Local: s.settings.Client, Admit: s.others.Serves, Enrolled: s.others.Enrolled, Enrol: s.others.Enrol, Build: thisBuild().String()}})
	if err != nil {
		return err
	}
	if s.lostKey = s.fleet.FreshKey() && s.store.Any(); s.lostKey {
		s.logger.Error(lostKeyText)
	}
	return s.admitRunners(c)
}

// startRunner connects the Runner of this process over the bus, with the rights and the
// messages that a remote one would have. It serves its first Project from the start.
func (s *server) startRunner(ctx context.Context, f upFlags, root string) (err error) {
	s.runner, s.resources, err = makeRunner(runner.Options{Dir: filepath.Join(s.dir, "runner"), Deny: []string{s.dir}, Client: s.settings.Client,
		Fsync: f.cfg.Durability != eventlog.Process}, f.cfg, s.logger)
	if err != nil {
		return err
	}
	if _, err := s.runner.AddProject(root); err != nil {
		return err
	}
	conn, err := s.log.RunnerBus(s.settings.Client)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.runnerStop, s.runnerDone = stop, make(chan struct{})
	go func() {
		defer close(s.runnerDone)
		if err := s.runner.Serve(serving, conn); err != nil && serving.Err() == nil {
			s.logger.Error("the Runner ended", "cause", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	return s.fleet.WaitRunner(ctx, s.settings.Client)
}

// stopRunner ends what the Runner runs and waits until it has told the results.
func (s *server) stopRunner() {
	if s.runnerStop != nil {
		s.runnerStop()
		<-s.runnerDone
	}
}

// noRunner is the reason of a server that serves what Runners elsewhere bring, and no directory here.
const noRunner = "no_runner"

// addProject serves one more directory and gives its name once calls may use it. Adding one
// that is served already gives the same name.
func (s *server) addProject(ctx context.Context, path string) (string, error) {
	if s.runner == nil {
		return "", fault.New(fault.Unavailable, "the server on this data directory has no Runner of its own, so it can serve no directory").
			WithReason(noRunner).WithNext("run `webcodex runner` for it, or end the server and start `webcodex up`")
	}
	p, err := s.runner.AddProject(path)
	if err != nil {
		return "", err
	}
	ref := event.ProjectRef{Client: s.settings.Client, Project: p.ID}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	tick := time.NewTicker(projectPoll)
	defer tick.Stop()
	for {
		if _, err = s.fleet.Target(ref); err == nil {
			return ref.String(), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", err
		}
	}
}

// paths are the directories served.
func (s *server) paths() []string {
	var out []string
	if s.runner == nil {
		return nil
	}
	for _, p := range s.runner.Projects() {
		out = append(out, p.Path)
	}
	return out
}

// projectPoll is how often a Project that the Runner has announced is looked for.
const projectPoll = 5 * time.Millisecond

// close releases everything, in the order of who needs whom; the lock goes last.
func (s *server) close() error {
	var err error
	s.removing.Wait()
	s.stopRunner()
	if s.kernel != nil {
		ctx, cancel := context.WithTimeout(context.Background(), settleTime)
		err = s.kernel.Close(ctx)
		cancel()
	}
	if s.tcpListener != nil {
		s.tcpListener.Close()
	}
	if s.controlListener != nil {
		s.controlListener.Close()
		removeSocket(s.dir)
	}
	if s.fleet != nil {
		s.fleet.Close()
	}
	if s.runner != nil {
		err = errors.Join(err, s.runner.Close())
		s.resources.Close()
	}
	if lerr := s.log.Close(); lerr != nil && s.log.Err() == nil {
		err = errors.Join(err, failf(exitStorage, "the log was not closed cleanly, the next start will look closely: %v", short(lerr)))
	}
	return err
}

// port is where hosts connect.
func (s *server) port() int {
	if a, ok := s.tcpListener.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// ready is what a host needs for one Project.
func (s *server) ready(project string) ready {
	return ready{Ready: true, Runners: s.runnerURLs(), MCPURL: "http://" + s.tcpListener.Addr().String() + "/mcp", Token: s.access.Token(), Project: project,
		DataDir: s.dir, PID: os.Getpid(), tokenFile: tokenPath(s.dir), public: s.public, durable: string(s.log.Status().Durability)}
}

func tokenPath(dir string) string { return filepath.Join(dir, mcp.TokenFile) }
