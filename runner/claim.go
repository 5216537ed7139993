package runner

import (
	"context"
	"time"

	"webcodex/runner/wire"
)

// claim asks for the grant and takes it only while it is fresh on the boot clock, which
// counts sleep: an hour-old request must not start after the laptop was opened.
func (r *Runner) claim(link context.Context, e *execution) (time.Duration, bool) {
	reply, ok := r.askGrant(e)
	for pause := resultRetry; !ok && e.patient() && link.Err() == nil; pause = min(2*pause, resultRetryMax) {
		select {
		case <-time.After(pause):
			reply, ok = r.askGrant(e)
		case <-e.ctx.Done():
		case <-link.Done():
		}
	}
	if !ok || !reply.Granted || e.ctx.Err() != nil {
		return 0, false
	}
	return min(time.Duration(reply.RemainingMS)*time.Millisecond, time.Duration(e.offer.Bounds.TimeoutMS)*time.Millisecond), true
}

// askGrant claims once; ok tells that an answer came while it was fresh.
func (r *Runner) askGrant(e *execution) (reply wire.ClaimReply, ok bool) {
	r.mu.Lock()
	to := r.link
	r.mu.Unlock()
	now := r.journal.current()
	sent := r.bootTime()
	ctx, cancel := context.WithTimeout(e.ctx, wire.GrantWait)
	defer cancel()
	reply, err := to.Claim(ctx, wire.Claim{ID: e.offer.ID, Digest: e.offer.Digest, Instance: r.instance,
		Generation: now.Generation, Boot: now.Boot})
	return reply, err == nil && reply.Reason != wire.NoLease && r.bootTime()-sent <= wire.GrantWait
}

// patient reports that a claim without an answer is to be repeated. A Job waits for the link as it
// waits for its slot; of several claims at most one is granted, and once that one was lost the
// next is denied. A call's is not: who waits for it is told in time.
func (e *execution) patient() bool { return e.offer.Bounds.Job && e.ctx.Err() == nil }
