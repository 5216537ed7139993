package call

import (
	"context"
	"sync"

	"webcodex/internal/fault"
)

// drain counts the calls in flight and refuses new ones once it has begun. The zero value is
// ready for use.
type drain struct {
	mu      sync.Mutex
	n       int
	refusal bool
	empty   chan struct{} // made by Drain; closed when the last call has left
}

func (d *drain) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusal {
		return fault.New(fault.ShuttingDown, "the server is shutting down").WithNext("call again when it is back")
	}
	d.n++
	return nil
}

func (d *drain) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n--
	if d.n == 0 && d.refusal {
		close(d.empty)
	}
}

// Drain refuses new calls and returns when those in flight have their answer, or with ctx's
// error. It may be called again, to go on waiting.
func (k *Kernel) Drain(ctx context.Context) error {
	d := &k.drain
	d.mu.Lock()
	if !d.refusal {
		d.refusal, d.empty = true, make(chan struct{})
		if d.n == 0 {
			close(d.empty)
		}
	}
	empty := d.empty
	d.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// InFlight is the number of calls without an answer yet.
func (k *Kernel) InFlight() int {
	k.drain.mu.Lock()
	defer k.drain.mu.Unlock()
	return k.drain.n
}
