package execution

import (
	"context"
	"errors"
	"time"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/runner/link/server"
	"webcodex/runner/wire"
)

// Run implements call.Fleet.
func (f *Fleet) Run(ctx context.Context, x call.Execution) (call.Outcome, error) {
	if err := f.lacks(x.Target, x.Offer.Op); err != nil {
		return call.Outcome{}, err
	}
	fl, err := f.launch(x)
	if err != nil {
		return call.Outcome{}, err
	}
	begun := time.Now()
	if x.Offer.Bounds.Job {
		// Nobody waits for its end, however soon it comes.
		fl.late = true
	}
	if out, err, over := f.offer(ctx, fl); over {
		return out, err
	}
	if x.Offer.Bounds.Job {
		return call.Outcome{Promoted: true}, nil
	}
	w := &waiting{f: f, fl: fl, cancelled: ctx.Done()}
	if !x.CancelOnDone {
		w.cancelled = nil
	}
	if x.Grace > 0 {
		t := time.NewTimer(time.Until(begun.Add(x.Grace)))
		defer t.Stop()
		w.grace = t.C
	}
	return w.wait()
}

// offer sends the offer; over tells that the call has its answer.
func (f *Fleet) offer(ctx context.Context, fl *flight) (out call.Outcome, err error, over bool) {
	var reply wire.OfferReply
	// A second time is harmless: the Runner knows the id by then.
	for attempt := 0; attempt < 2; attempt++ {
		// The caller's end must not leave it open whether the Runner has the offer.
		octx, cancel := context.WithTimeout(context.WithoutCancel(ctx), offerWait)
		reply, err = f.link.Offer(octx, fl.client, fl.x.Offer)
		cancel()
		if err == nil || errors.Is(err, server.ErrGone) || fl.over() {
			break
		}
	}
	switch {
	case err != nil && fl.deny():
		// It was never granted in this life, so it did not and will not start.
		f.forget(fl)
		if errors.Is(err, server.ErrGone) {
			f.gone(fl.client)
		}
		u := unavailable()
		u.ExecutionState = "not_started"
		return call.Outcome{}, u, true
	case err == nil && reply.First != "" && fl.deny():
		f.forget(fl)
		if fl.x.Offer.Key == "" || !reply.First.Valid() { // only an offer with a key has a first one
			return fl.refused(fault.New(fault.RunnerRefused, "the Runner answered with an execution that cannot be the first of this call").WithReason("malformed")), nil, true
		}
		return call.Outcome{First: reply.First}, nil, true
	case err == nil && reply.Fault != nil && fl.deny():
		f.forget(fl)
		return fl.refused(tameFault(reply.Fault)), nil, true
	}
	// Whatever the reply, what was granted may run: its end alone tells.
	return call.Outcome{}, nil, false
}

// refused is the outcome of an offer that its Runner did not take.
func (fl *flight) refused(f *fault.Error) call.Outcome {
	return call.Outcome{Result: &wire.Result{ID: fl.id, Digest: fl.digest, Instance: fl.instance, State: wire.JRefused, Fault: f}}
}

// over reports that the verdict is given or the end is there.
func (fl *flight) over() bool {
	select {
	case <-fl.decided:
		return true
	case <-fl.ended:
		return true
	default:
		return false
	}
}

// waiting is a call that waits for its execution.
type waiting struct {
	f         *Fleet
	fl        *flight
	cancelled <-chan struct{} // nil once it has been acted on, or never
	grace     <-chan time.Time
}

func (w *waiting) wait() (call.Outcome, error) {
	fl := w.fl
	claim := time.NewTimer(claimWait)
	defer claim.Stop()
	decided, noClaim := (<-chan struct{})(fl.decided), claim.C
	var proof, cancelled <-chan time.Time
	graceOver := false
	for {
		select {
		case <-fl.ended:
			return w.foreground()
		default:
		}
		select {
		case <-fl.ended:
		case <-noClaim:
			if fl.deny() {
				return w.never()
			}
			noClaim = nil
		case <-decided:
			if fl.deny() {
				return w.never()
			}
			decided, noClaim = nil, nil
			limit := time.NewTimer(time.Duration(fl.x.Offer.Bounds.TimeoutMS)*time.Millisecond + wire.ProofWait)
			defer limit.Stop()
			proof = limit.C
			if graceOver && cancelled == nil {
				return w.promote()
			}
		case <-w.grace:
			w.grace = nil
			if decided == nil && cancelled == nil {
				return w.promote()
			}
			graceOver = true
		case <-w.cancelled:
			w.cancelled = nil
			if fl.deny() {
				return w.never()
			}
			go w.f.cancelQuietly(fl, "cancelled")
			t := time.NewTimer(cancelWait)
			defer t.Stop()
			cancelled = t.C
		case <-cancelled:
			return w.unknown()
		case <-proof:
			return w.unknown()
		case <-w.f.closed:
			if fl.deny() {
				return w.never()
			}
			return w.unknown()
		}
	}
}

// foreground gives the end to the call that waited for it; it is acknowledged to the Runner
// when the call's finish is durable.
func (w *waiting) foreground() (call.Outcome, error) {
	r := *w.fl.end
	settled := w.fl.x.Settled
	go func() {
		if settled != nil {
			select {
			case <-settled:
			case <-w.f.closed:
				return
			}
		}
		w.fl.ack()
		w.f.forget(w.fl)
	}()
	return call.Outcome{Result: &r}, nil
}

// never answers with the proof that the id was never granted in this server's life.
func (w *waiting) never() (call.Outcome, error) {
	w.fl.ack()
	w.f.forget(w.fl)
	return call.Outcome{Result: &wire.Result{ID: w.fl.id, Digest: w.fl.digest, Instance: w.fl.instance, State: wire.JNever}}, nil
}

// promote makes a Job of what still runs.
func (w *waiting) promote() (call.Outcome, error) {
	if _, over := w.fl.leave(); over {
		return w.foreground()
	}
	w.f.overdue(w.fl)
	return call.Outcome{Promoted: true}, nil
}

func (w *waiting) unknown() (call.Outcome, error) {
	if _, over := w.fl.leave(); over {
		return w.foreground()
	}
	return call.Outcome{Unknown: true}, nil
}

func (f *Fleet) cancelQuietly(fl *flight, reason string) {
	if _, err := f.Cancel(context.Background(), fl.client, fl.id, reason); err != nil {
		f.o.Logger.Debug("an execution could not be cancelled", "execution", fl.id, "cause", err)
	}
}
