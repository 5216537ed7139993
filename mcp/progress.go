package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// minProgressGap keeps a chatty tool from flooding its client.
const minProgressGap = 250 * time.Millisecond

// reporter tells one client about one call: progress where it asked for it, a comment in the
// response stream where not, so that neither tunnels nor hosts take silence for death.
type reporter struct {
	ctx   context.Context
	call  *sdk.CallToolRequest
	token any // nil: no progress was asked for
	began time.Time

	mu     sync.Mutex
	last   time.Time
	closed bool
}

func newReporter(ctx context.Context, c *sdk.CallToolRequest) *reporter {
	return &reporter{ctx: ctx, call: c, token: c.Params.GetProgressToken(), began: time.Now()}
}

// say sends one sentence. Its value is the seconds since the call began, which always grows.
// Sentences within the gap are dropped, and none leaves after close.
func (r *reporter) say(message string) {
	if r.token == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.closed || now.Sub(r.last) < minProgressGap {
		return
	}
	r.last = now
	// A client that has gone is no reason to stop: the outcome is in the answer and the log.
	_ = r.call.Session.NotifyProgress(r.ctx, &sdk.ProgressNotificationParams{ProgressToken: r.token,
		Progress: now.Sub(r.began).Seconds(), Message: cut(message, maxProgress)})
}

// every speaks at the interval until stop is called, and has ended when stop returns: the SDK
// may touch the response's headers again then.
func (r *reporter) every(interval time.Duration, w *streamWriter) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-r.ctx.Done():
				return
			case <-t.C:
				if r.token != nil {
					r.say(fmt.Sprintf("still running after %d s", int(time.Since(r.began).Seconds())))
				} else if !w.beat() {
					return
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
	}
}
