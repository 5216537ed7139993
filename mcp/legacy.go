package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/internal/fault"
)

// legacySessions bounds the sessions of the eras that have them: many clients never end
// theirs, and each holds goroutines. It also knows whose each is: an id is no authority.
type legacySessions struct {
	mu   sync.Mutex
	byID map[string]*legacySession
}

type legacySession struct {
	session *sdk.ServerSession
	grant   grant // who opened it: nobody else may speak in it
	busy    int
	last    time.Time
}

// trackLegacy counts what each session has in flight, and makes room for a new one.
func (s *Server) trackLegacy(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ss, ok := req.GetSession().(*sdk.ServerSession)
		if !ok || ss.ID() == "" {
			return next(ctx, method, req)
		}
		if !s.legacy.enter(ss, exchangeOf(ctx).grant) {
			return nil, allBusy()
		}
		defer s.legacy.leave(ss.ID())
		return next(ctx, method, req)
	}
}

// allBusy refuses a session where none can make room for it.
func allBusy() error {
	return &jsonrpc.Error{Code: codeInternal, Message: fmt.Sprintf("%d sessions are open and all are busy; end one and try again", MaxLegacySessions),
		Data: json.RawMessage(`{"error_kind":"` + string(fault.TooManyCalls) + `"}`)}
}

// enter marks a session busy. A new one beyond the bound takes the place of the one that was
// idle for longest; false where none is idle.
func (l *legacySessions) enter(ss *sdk.ServerSession, g grant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byID[ss.ID()]
	if e == nil {
		if !l.makeRoom(g) {
			return false
		}
		if l.byID == nil {
			l.byID = map[string]*legacySession{}
		}
		e = &legacySession{session: ss, grant: g}
		l.byID[ss.ID()] = e
		go func() {
			_ = ss.Wait()
			l.forget(ss.ID())
		}()
	}
	e.busy++
	e.last = time.Now()
	return true
}

// makeRoom holds a principal to its bound, at the cost of nobody else.
func (l *legacySessions) makeRoom(g grant) bool {
	var oldest *legacySession
	own := 0
	for _, e := range l.byID {
		if e.grant.principal.Actor.Principal != g.principal.Actor.Principal {
			continue
		}
		if own++; e.busy == 0 && (oldest == nil || e.last.Before(oldest.last)) {
			oldest = e
		}
	}
	if own < MaxLegacySessions {
		return true
	}
	if oldest == nil {
		return false
	}
	l.end(oldest)
	return true
}

// end closes a session; l.mu is held.
func (l *legacySessions) end(e *legacySession) {
	delete(l.byID, e.session.ID())
	go func() { _ = e.session.Close() }()
}

// mine reports whether the session is there and was opened with this credential.
func (l *legacySessions) mine(id string, g grant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byID[id]
	return e != nil && e.grant.token == g.token && e.grant.hash == g.hash
}

// sweep ends the sessions whose grant does not hold any more.
func (l *legacySessions) sweep(holds func(grant) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.byID {
		if !holds(e.grant) {
			l.end(e)
		}
	}
}

func (l *legacySessions) leave(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e != nil {
		e.busy--
		e.last = time.Now()
	}
}

func (l *legacySessions) forget(id string) {
	l.mu.Lock()
	delete(l.byID, id)
	l.mu.Unlock()
}
