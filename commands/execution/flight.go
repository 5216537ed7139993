package execution

import (
	"context"
	"errors"
	"sync"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/link/server"
	"webcodex/runner/wire"
)

// verdict is G of the protocol: what the server has said about an id in this life. It is not
// kept: after a restart no old id can ever be granted.
type verdict int

const (
	undecided verdict = iota
	granted
	denied
)

// flight is one id from its offer to the acknowledgement of its end.
type flight struct {
	x        call.Execution
	id       event.ExecutionID
	client   event.ClientID
	instance event.InstanceID
	digest   string

	decided chan struct{} // closed when the verdict is given
	ended   chan struct{} // closed when the end is known
	acked   chan struct{} // closed by ack
	ackOnce sync.Once

	mu      sync.Mutex
	verdict verdict
	end     *wire.Result
	late    bool // nobody waits for the end any more: it goes to x.Late
	adopted bool // it is of an earlier server life; set before it can be found
	told    bool // x.Late has succeeded, or the waiting call has its finish
	telling sync.Mutex
}

func (f *Fleet) launch(x call.Execution) (*flight, error) { return f.launchAs(x, false) }

func (f *Fleet) launchAs(x call.Execution, adopted bool) (*flight, error) {
	fl := &flight{x: x, id: x.Offer.ID, client: x.Target.Ref.Client, instance: x.Target.Instance, digest: x.Offer.Digest,
		decided: make(chan struct{}), ended: make(chan struct{}), acked: make(chan struct{}), late: adopted, adopted: adopted}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flights[fl.id] != nil {
		return nil, fault.New(fault.ExecutionConflict, "this execution id is in use")
	}
	f.flights[fl.id] = fl
	return fl, nil
}

func (f *Fleet) find(id event.ExecutionID) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flights[id]
}

// forget ends a flight: from now on its id is not open and can never be granted.
func (f *Fleet) forget(fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.flights, fl.id)
}

// deny gives the verdict unless it was given; it reports whether the id can never start.
func (fl *flight) deny() bool { return fl.decide(denied) == denied }

func (fl *flight) decide(v verdict) verdict {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.verdict == undecided {
		fl.verdict = v
		close(fl.decided)
	}
	return fl.verdict
}

// grant gives the grant, at most once per id.
func (fl *flight) grant() bool {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.verdict != undecided {
		return false
	}
	fl.verdict = granted
	close(fl.decided)
	return true
}

// deliver notes the end; the first one counts.
func (fl *flight) deliver(r wire.Result) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.end == nil {
		fl.end = &r
		close(fl.ended)
	}
}

// ack lets the Runner forget the end: it is durable, or needs no keeping.
func (fl *flight) ack() { fl.ackOnce.Do(func() { close(fl.acked) }) }

// leave turns the flight over to x.Late, unless its end is there already.
func (fl *flight) leave() (wire.Result, bool) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.end != nil && !fl.late {
		return *fl.end, true
	}
	fl.late = true
	return wire.Result{}, false
}

// claim is the one place where something is allowed to start.
func (f *Fleet) claim(c event.ClientID, m wire.Claim) wire.ClaimReply {
	fl := f.find(m.ID)
	if fl == nil || fl.client != c || fl.instance != m.Instance || fl.digest != m.Digest {
		return wire.ClaimReply{Reason: "not_open"}
	}
	if !f.leads(c, m.Instance) {
		return wire.ClaimReply{Reason: wire.NoLease}
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyWait)
	defer cancel()
	if err := fl.x.Ready(ctx); err != nil {
		fl.deny()
		return wire.ClaimReply{Reason: "not_ready"}
	}
	if !f.leads(c, m.Instance) || !fl.grant() {
		return wire.ClaimReply{Reason: "denied"}
	}
	if fl.isLate() {
		f.overdue(fl)
	}
	return wire.ClaimReply{Granted: true, RemainingMS: fl.x.Offer.Bounds.TimeoutMS}
}

// leads reports that the instance holds the client's lease.
func (f *Fleet) leads(c event.ClientID, i event.InstanceID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.leases[c]
	return l != nil && l.instance == i
}

// started is a hint; nothing depends on it.
func (f *Fleet) started(event.ClientID, wire.Started) {}

// result takes an end and acknowledges it when it is durable, or when nobody keeps the id.
func (f *Fleet) result(c event.ClientID, r wire.Result) wire.Ack {
	fl := f.find(r.ID)
	if fl == nil {
		return wire.Ack{OK: true, Reason: "not_open"}
	}
	if fl.client != c || fl.instance != r.Instance || fl.digest != r.Digest {
		return wire.Ack{Reason: "mismatch"}
	}
	if !ending(r.State) {
		return wire.Ack{Reason: "malformed"}
	}
	r = tame(r)
	fl.deny() // what has ended unstarted cannot start; a granted one stays granted
	fl.deliver(r)
	ctx, cancel := context.WithTimeout(context.Background(), ackWait)
	defer cancel()
	if fl.isLate() {
		if err := f.tellLate(ctx, fl); err != nil {
			f.o.Logger.Warn("a late end could not be recorded yet", "execution", fl.id, "cause", err)
			return wire.Ack{Reason: "not_recorded"}
		}
	}
	select {
	case <-fl.acked:
		return wire.Ack{OK: true}
	case <-ctx.Done():
		return wire.Ack{Reason: "not_recorded"}
	case <-f.closed:
		return wire.Ack{Reason: "closing"}
	}
}

func (fl *flight) isLate() bool {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	return fl.late
}

// tellLate hands the end to x.Late, once with success.
func (f *Fleet) tellLate(ctx context.Context, fl *flight) error {
	fl.telling.Lock()
	defer fl.telling.Unlock()
	if fl.told {
		return nil
	}
	if fl.x.Late != nil {
		if err := fl.x.Late(ctx, *fl.end); err != nil {
			return err
		}
	}
	fl.told = true
	fl.ack()
	f.forget(fl)
	return nil
}

// settleByJournal asks the Runner's present life about an id of an earlier one. Its word is
// the proof; where it proves nothing the end is lost.
func (f *Fleet) settleByJournal(fl *flight) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), askWait)
		q, err := f.query(ctx, fl.client, fl.id)
		cancel()
		if err == nil && alive(q.State) {
			if fl.adopted && q.State == wire.JAccepted {
				f.cancelQuietly(fl, wire.CancelAbandoned) // it waits for a grant that it can never get
			}
			if fl.x.Alive != nil {
				fl.x.Alive()
			}
			return // the Runner tells its end
		}
		if err == nil {
			fl.deny()
			fl.deliver(fl.proven(q))
			if fl.isLate() {
				ctx, cancel := context.WithTimeout(context.Background(), ackWait)
				defer cancel()
				if err := f.tellLate(ctx, fl); err != nil {
					f.o.Logger.Warn("a late end could not be recorded yet", "execution", fl.id, "cause", err)
				}
			}
			return
		}
		if errors.Is(err, server.ErrGone) {
			f.gone(fl.client)
			return // its next hello brings us back here
		}
		select {
		case <-fl.ended:
			return
		case <-f.closed:
			return
		case <-time.After(queryEvery):
		}
	}
}

// proven is what a journal's answer says about an id (faults.md 3, crash table).
func (fl *flight) proven(q wire.QueryReply) wire.Result {
	r := wire.Result{ID: fl.id, Digest: fl.digest, Instance: fl.instance, State: wire.JLost}
	switch q.State {
	case wire.JTerminal, wire.JSettled, wire.JRefused, wire.JStartFailed:
		if q.Result != nil {
			end := *q.Result
			end.ID, end.Digest, end.Instance = fl.id, fl.digest, fl.instance
			return end
		}
	case wire.JNever:
		if r.State = wire.JNever; q.Result != nil {
			r.Fault = q.Result.Fault
		}
	case wire.JAbsent:
		t := fl.x.Target
		if t.Generation != "" && t.Generation == q.Generation && t.Boot == q.Boot {
			r.State = wire.JNever
		}
	}
	return r
}
