package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// live holds what stays open after a caller was let in, so that it ends with the credential:
// streams on which the server speaks. Calls in flight come to their end; the next one is
// refused at the edge.
type live struct {
	mu      sync.Mutex
	streams map[*stream]struct{}
}

type stream struct {
	grant grant
	end   context.CancelFunc
}

// open ties a request that only listens to its grant; done is to be called at its end.
func (l *live) open(r *http.Request, g grant) (_ *http.Request, done func()) {
	ctx, end := context.WithCancel(r.Context())
	s := &stream{g, end}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams == nil {
		l.streams = map[*stream]struct{}{}
	}
	l.streams[s] = struct{}{}
	return r.WithContext(ctx), func() {
		end()
		l.mu.Lock()
		delete(l.streams, s)
		l.mu.Unlock()
	}
}

// sweep ends the streams whose grant does not hold any more.
func (l *live) sweep(holds func(grant) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.streams {
		if !holds(s.grant) {
			s.end()
		}
	}
}

// Sweep ends what stays open for credentials that are good no more: streams, and sessions of
// the legacy eras. It runs by itself after every change and once a second, for those that
// expire; a command that revokes calls it so that its answer tells what is done.
func (s *Server) Sweep() {
	s.live.sweep(s.cfg.Access.holds)
	s.legacy.sweep(s.cfg.Access.holds)
}

// sweepEvery is how soon an expired token loses what it has open.
const sweepEvery = time.Second

func (s *Server) sweeps() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.closed:
			return
		case <-s.cfg.Access.second.Tokens.Changed():
		case <-tick.C:
		}
		s.Sweep()
	}
}
