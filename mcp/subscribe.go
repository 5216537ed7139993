package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

const (
	// maxURI bounds a subscription's URI, in bytes; it is kept as long as its session.
	maxURI = 512
	// updateDelay gathers the changes of one Session into one notification.
	updateDelay = time.Second
)

// subscribe accepts any URI but the handoffs that the caller may not read: a notification
// tells that somebody works there.
func (s *Server) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	if len(req.Params.URI) > maxURI {
		return invalidParams(fault.New(fault.InvalidArguments, "the URI is longer than %d bytes", maxURI).WithField("uri"))
	}
	id, ok := handoffID(req.Params.URI)
	if !ok || s.cfg.Sessions == nil {
		return nil
	}
	caller := callerOf(ctx)
	if !mayCall(caller, readSessionHandoff.Spec) {
		return sdk.ResourceNotFoundError(req.Params.URI)
	}
	core, there := s.cfg.Sessions.Core(event.SessionID(id))
	if !there || core.Authority == "" || core.Authority != caller.Actor.Authority || !caller.Sees(core.Project) {
		return sdk.ResourceNotFoundError(req.Params.URI)
	}
	return nil
}

// touched gathers Sessions whose handoff has changed since the last notification.
type touched struct {
	mu  sync.Mutex
	ids map[event.SessionID]struct{}
}

// noteChange tells subscribers after a call that may have changed a Session. The end of a Job
// is not noticed here; its observer sees it.
func (s *Server) noteChange(spec *call.Spec, args json.RawMessage) {
	if spec.Plane == call.PlaneRuntime || spec.Plane == call.PlaneSession && spec.Class == call.Observe {
		return
	}
	var named struct {
		SessionID event.SessionID `json:"session_id"`
	}
	if json.Unmarshal(args, &named) == nil {
		s.sessionChanged(named.SessionID)
	}
}

// sessionChanged tells subscribers of the Session's handoff, soon and once for many changes.
// It does not block.
func (s *Server) sessionChanged(id event.SessionID) {
	if !id.Valid() {
		return
	}
	t := &s.touched
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ids) == 0 {
		t.ids = map[event.SessionID]struct{}{}
		time.AfterFunc(updateDelay, s.tellSubscribers)
	}
	t.ids[id] = struct{}{}
}

func (s *Server) tellSubscribers() {
	s.touched.mu.Lock()
	ids := s.touched.ids
	s.touched.ids = nil
	s.touched.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), writeDeadline)
	defer cancel()
	for id := range ids {
		for _, srv := range []*sdk.Server{s.direct, s.full} {
			_ = srv.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: handoffPrefix + string(id) + handoffSuffix})
		}
	}
}
