package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/mcp"
)

// Bounds of a server's end.
const (
	// drainTime is how long calls in flight may go on after the signal. Then the Runner ends
	// what they run, and they get their true result.
	drainTime = 10 * time.Second
	// settleTime bounds each later step of the end.
	settleTime = 10 * time.Second
)

// serve is one life of a server: open, recover, answer, drain, close. Its error is
// eventlog.ErrLocked where another process has the data directory.
func serve(ctx context.Context, s streams, f upFlags, dir, root string) (err error) {
	srv, err := openServer(ctx, s, f, dir, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.close()) }()
	project := ""
	if root != "" {
		if project, err = srv.addProject(ctx, root); err != nil {
			return err
		}
	}
	life, again := restarted()
	for _, path := range life.Projects {
		if _, err := srv.addProject(ctx, path); err != nil {
			report(s.err, err)
		}
	}
	// What a dead server left open gets its end before anybody is answered.
	closed, err := srv.kernel.Recover(ctx)
	if err != nil {
		return err
	}
	if what := closedText(closed); what != "" {
		fmt.Fprintf(s.err, "webcodex: closed %s that the last server left open\n", what)
	}
	if err := srv.listen(f.cfg.Listen, f.cfg.PublicURL); err != nil {
		return err
	}
	ended := srv.answer()
	srv.removing.Go(func() { srv.remover.Run(ctx) })
	defer srv.startHistory()()
	// Who waits for the one line of --json has had it, and may have gone.
	if !again || !f.asJSON {
		if err := printReady(s.out, srv.ready(project), f.asJSON, f.showToken); err != nil {
			return err
		}
	}
	err = srv.wait(ctx, f.idleExit, ended)
	srv.drain()
	return err
}

// closedText names what a start gave its end; empty: nothing was open.
func closedText(n call.Recovered) string {
	var parts []string
	for _, p := range []struct {
		n    int
		name string
	}{{n.Calls, "call"}, {n.Jobs, "Job"}} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.name)
		case p.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", p.n, p.name))
		}
	}
	return strings.Join(parts, " and ")
}

// listen opens both sockets and builds what answers on them.
func (s *server) listen(explicit, public string) error {
	life, _ := restarted()
	l, port, err := listen(explicit, s.settings.Port, life.Port)
	if err != nil {
		return err
	}
	s.tcpListener = l
	if port != 0 && s.settings.Port == 0 {
		s.settings.Port = port
		if err := s.settings.save(s.dir); err != nil {
			return err
		}
	}
	s.public = public
	s.edge, err = mcp.New(mcp.Config{Kernel: s.kernel, Sessions: s.store, Access: s.access, Listen: l.Addr().String(),
		PublicURL: public, Version: thisBuild().Version, Profile: s.profile, Logger: s.logger})
	if err != nil {
		return failf(exitFailed, "the MCP server cannot be built: %v", err)
	}
	s.controlListener, err = listenControl(s.dir, s.logger)
	return err
}

// answer begins to serve; the channel tells when a listener broke.
func (s *server) answer() <-chan error {
	s.tcp = mcp.HTTPServer(s.use.wrap(s.edge.Handler()))
	s.control = &http.Server{Handler: s.controlHandler(), ReadHeaderTimeout: settleTime}
	ended := make(chan error, 2)
	for _, pair := range []struct {
		srv *http.Server
		l   net.Listener
	}{{s.tcp, s.tcpListener}, {s.control, s.controlListener}} {
		go func() {
			if err := pair.srv.Serve(pair.l); !errors.Is(err, http.ErrServerClosed) {
				ended <- err
			}
		}()
	}
	return ended
}

// wait returns when the server has to end; an error says why it may not simply end.
func (s *server) wait(ctx context.Context, idleExit time.Duration, ended <-chan error) error {
	idle := make(chan struct{})
	if idleExit > 0 {
		watch, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			s.use.idle(watch, idleExit, s.busy)
			close(idle)
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-idle:
		return nil
	case <-s.log.Failed():
		return &brokenLog{err: s.log.Err(), projects: s.paths(), port: s.port()}
	case err := <-ended:
		return failf(exitFailed, "the server can no longer be reached: %v", cause(err))
	}
}

// drain lets calls in flight come to their end and then closes the ways in.
func (s *server) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	err := s.kernel.Drain(ctx)
	cancel()
	if err != nil {
		// Their commands are ended, and so they get a true result.
		s.stopRunner()
		ctx, cancel = context.WithTimeout(context.Background(), settleTime)
		_ = s.kernel.Drain(ctx)
		cancel()
	}
	close(s.ending)
	s.edge.Close()
	ctx, cancel = context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// Streams of hosts that only listen never end by themselves.
	for _, h := range []*http.Server{s.tcp, s.control} {
		if h.Shutdown(ctx) != nil {
			_ = h.Close()
		}
	}
}

// printCall is the operator's line of one call: no argument, no output.
func printCall(s streams, l call.Line) {
	what := "ok"
	switch {
	case l.Kind != "":
		what = string(l.Kind)
	case l.Status != "succeeded":
		what = l.Status
	}
	id := string(l.Session)
	if len(id) > 16 {
		id = id[:16] + "…"
	}
	took := l.Duration.Round(time.Millisecond).String()
	if l.Duration < time.Millisecond {
		took = "<1ms"
	}
	fmt.Fprintf(s.err, "%s  %-24s  %-20s  %6s  %s\n", time.Now().Format("15:04:05"), clean(l.Tool), what, took, id)
}

// busy reports whether calls or Jobs go on; what cannot be told counts as busy.
func (s *server) busy() bool {
	if s.kernel.InFlight() > 0 || s.kernel.Running() > 0 {
		return true
	}
	open, err := s.store.Open()
	return err != nil || len(open) > 0
}
