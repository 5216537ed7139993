package mcp

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// reporter tells one client about one call: progress where it asked for it, a comment in the
// response stream where not, so that neither tunnels nor hosts take silence for death.
type reporter struct {
	ctx   context.Context
	call  *sdk.CallToolRequest
	token any // nil: no progress was asked for
	began time.Time
}

func newReporter(ctx context.Context, c *sdk.CallToolRequest) *reporter {
	return &reporter{ctx: ctx, call: c, token: c.Params.GetProgressToken(), began: time.Now()}
}

// pace is when a client hears of its call: after first, then at each interval.
type pace struct{ first, then time.Duration }

// pace is that of progress for who asked for it, else that of keep-alives.
func (s *Server) pace(r *reporter) pace {
	if r.token != nil {
		return s.cfg.progress
	}
	return pace{s.cfg.Heartbeat, s.cfg.Heartbeat}
}

// tell sends one sentence of the server's own. Its value is the seconds since the call began,
// which always grows.
func (r *reporter) tell() {
	took := time.Since(r.began)
	// A client that has gone is no reason to stop: the outcome is in the answer and the log.
	_ = r.call.Session.NotifyProgress(r.ctx, &sdk.ProgressNotificationParams{ProgressToken: r.token,
		Progress: took.Seconds(), Message: fmt.Sprintf("running, %d s", int(took.Seconds()))})
}

// speak speaks at the pace until stop is called, and has ended when stop returns: the SDK may
// touch the response's headers again then.
func (r *reporter) speak(p pace, w *streamWriter) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTimer(p.first)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-r.ctx.Done():
				return
			case <-t.C:
				if r.token != nil {
					r.tell()
				} else if !w.beat() {
					return
				}
				t.Reset(p.then)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
