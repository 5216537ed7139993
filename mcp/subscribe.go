package mcp

import (
	"context"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

const (
	// maxURI bounds a subscription's URI, in bytes; it is kept as long as its session.
	maxURI = 512
	// updateDelay gathers the changes of one Session into one notification.
	updateDelay = time.Second
)

// subscribe accepts any URI: a resource may come to be later. Authority is checked when it is
// read; a notification says only that the reader should look again.
func subscribe(_ context.Context, req *sdk.SubscribeRequest) error {
	if len(req.Params.URI) > maxURI {
		return invalidParams(fault.New(fault.InvalidArguments, "the URI is longer than %d bytes", maxURI).WithField("uri"))
	}
	return nil
}

// touched gathers Sessions whose handoff has changed since the last notification.
type touched struct {
	mu  sync.Mutex
	ids map[event.SessionID]struct{}
}

// SessionChanged tells subscribers of the Session's handoff, soon and once for many changes.
// It does not block; the pipeline calls it after each recorded call.
func (s *Server) SessionChanged(id event.SessionID) {
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
