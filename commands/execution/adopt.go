package execution

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/runner/wire"
)

// Adopt implements call.Fleet. What its Runner has in hand ends with a result like any other; a
// Runner that is not there is asked at its next hello.
func (f *Fleet) Adopt(x call.Execution) {
	fl, err := f.launchAs(x, true)
	if err != nil {
		return
	}
	fl.grant() // so that nobody else can: an earlier life may have
	f.overdue(fl)
	go f.settleByJournal(fl)
}

// overdue tells the end of an execution as unknown when it is long over its limit and nothing
// proved one (faults.md 3.8). Proof that comes later is told too.
func (f *Fleet) overdue(fl *flight) {
	limit := time.NewTimer(time.Duration(fl.x.Offer.Bounds.TimeoutMS)*time.Millisecond + f.proof)
	go func() {
		defer limit.Stop()
		select {
		case <-limit.C:
		case <-fl.ended:
			return
		case <-f.closed:
			return
		}
		if fl.x.Late == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), ackWait)
		defer cancel()
		fl.telling.Lock()
		defer fl.telling.Unlock()
		if fl.told {
			return
		}
		if err := fl.x.Late(ctx, wire.Result{ID: fl.id, Digest: fl.digest, Instance: fl.instance, State: wire.JLost}); err != nil {
			f.o.Logger.Warn("an unknown end could not be recorded yet", "execution", fl.id, "cause", err)
		}
	}()
}

// alive reports a journal state that is no end.
func alive(s wire.JournalState) bool {
	return s == wire.JAccepted || s == wire.JStarting || s == wire.JRunning
}
