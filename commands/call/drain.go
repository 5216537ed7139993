package call

import (
	"context"
	"sync"

	"webcodex/internal/fault"
)

// drain counts what is in flight and refuses new ones once it is waited for. The zero value is
// ready for use.
type drain struct {
	mu      sync.Mutex
	n       int
	refusal bool
	empty   chan struct{} // nil while nobody waits; closed when the last one has left
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

// begin counts one in that is never refused.
func (d *drain) begin() {
	d.mu.Lock()
	d.n++
	d.mu.Unlock()
}

func (d *drain) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n--; d.n == 0 && d.empty != nil {
		close(d.empty)
		d.empty = nil
	}
}

// wait refuses new ones from now on and returns when none is left, or with ctx's error.
func (d *drain) wait(ctx context.Context) error {
	d.mu.Lock()
	d.refusal = true
	if d.n == 0 {
		d.mu.Unlock()
		return nil
	}
	if d.empty == nil {
		d.empty = make(chan struct{})
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

// Drain refuses new calls, ends those that only wait, and returns when all in flight have their
// answer, or with ctx's error. It may be called again, to go on waiting.
func (k *Kernel) Drain(ctx context.Context) error {
	k.ending.begin()
	return k.drain.wait(ctx)
}

// Close waits until late ends that are being recorded are in the log.
func (k *Kernel) Close(ctx context.Context) error { return k.late.wait(ctx) }

// InFlight is the number of calls without an answer yet.
func (k *Kernel) InFlight() int {
	k.drain.mu.Lock()
	defer k.drain.mu.Unlock()
	return k.drain.n
}
