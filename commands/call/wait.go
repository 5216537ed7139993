package call

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/token"
)

// ending tells calls that wait that the server is about to end. The zero value is ready for
// use.
type ending struct {
	once sync.Once
	ctx  context.Context
	end  context.CancelFunc
}

func (e *ending) context() context.Context {
	e.once.Do(func() { e.ctx, e.end = context.WithCancel(context.Background()) })
	return e.ctx
}

func (e *ending) begin() {
	e.context()
	e.end()
}

// Bounded gives the context of a wait: it ends with ctx, after d, or when the server begins to
// end, so that no wait holds that up. The function is to be called when the wait is over.
func (c *Call) Bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(c.kernel.ending.context(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// Tokens seal what a caller holds and gives back.
func (c *Call) Tokens() *token.Keys { return c.kernel.cfg.Tokens }

// Epoch names the history that the log tells now; a tail that was lost, and a restored backup,
// change it (faults.md 2.4).
func (c *Call) Epoch() string {
	if c.kernel.cfg.Epoch == nil {
		return ""
	}
	return c.kernel.cfg.Epoch()
}

// Author is the Session that an answer or a message of this call is by: an explicitly
// authorised recorder, else empty. Callers cannot supply it (MSG-41).
func (c *Call) Author() event.SessionID {
	if c.Recorder == nil {
		return ""
	}
	return c.Recorder.ID
}

// ownTokens are good for one Kernel's life.
func ownTokens() *token.Keys {
	secret := make([]byte, 32)
	rand.Read(secret)
	k, err := token.New(secret)
	if err != nil {
		panic(err) // of key sizes, which are constant
	}
	return k
}

// Waiters is the number of calls that only wait.
func (k *Kernel) Waiters() int {
	k.slots.mu.Lock()
	defer k.slots.mu.Unlock()
	return k.slots.waiters
}
