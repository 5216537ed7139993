package call

import (
	"sync"

	"webcodex/internal/fault"
)

// slots bounds what one principal does at once: calls that work, and calls that only wait
// for something to happen, which must not keep the others from working (faults.md 4).
type slots struct {
	mu      sync.Mutex
	working map[string]int // per principal fingerprint; absent is 0
	waiting map[string]int
	waiters int // of all principals
}

func newSlots() *slots { return &slots{working: map[string]int{}, waiting: map[string]int{}} }

func (s *slots) take(who string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working[who] >= MaxCallsPerPrincipal {
		return tooMany("this caller already has %d calls in flight", MaxCallsPerPrincipal)
	}
	s.working[who]++
	return nil
}

func (s *slots) free(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	less(s.working, who)
}

// wait trades the caller's working slot for a waiting one; back trades it again. Coming back
// is never refused: the call is about to end.
func (s *slots) wait(who string) (back func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.waiting[who] >= MaxWaitersPerPrincipal:
		return nil, tooMany("this caller already has %d calls waiting", MaxWaitersPerPrincipal)
	case s.waiters >= MaxWaiters:
		return nil, tooMany("%d calls are waiting on this server", MaxWaiters)
	}
	less(s.working, who)
	s.waiting[who]++
	s.waiters++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		less(s.waiting, who)
		s.waiters--
		s.working[who]++
	}, nil
}

func less(m map[string]int, who string) {
	if m[who]--; m[who] == 0 {
		delete(m, who)
	}
}

func tooMany(format string, n int) error {
	return fault.New(fault.TooManyCalls, format, n).WithNext("wait for one to end, then call again")
}

// key names the principal in the slots.
func (c *Call) key() string { return c.Principal.Actor.Principal }

// Waiting runs a part of a tool that only waits for something to happen. What came meanwhile is
// for nobody whose credential has ended meanwhile (MSG-12). Errors: fault too_many_calls;
// session_authority_denied where it has; what wait gives.
func (c *Call) Waiting(wait func() error) error {
	back, err := c.kernel.slots.wait(c.key())
	if err != nil {
		return err
	}
	defer back()
	if err := wait(); err != nil {
		return err
	}
	if c.req.Holds != nil && !c.req.Holds() {
		return fault.New(fault.SessionAuthorityDenied, "the credential of this call ended while it waited").WithReason("credential_ended")
	}
	return nil
}
