package runner

import (
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// bind notes whom a key stands for. The caller holds mu. A start that is proven not to have
// happened, and will not, gives the key free: whoever repeats the call wants it to happen.
func (j *journal) bind(id event.ExecutionID, e *entry, r record) {
	if r.Key != "" {
		e.key, e.payload = r.Key, r.Payload
		j.keys[e.key] = id
	}
	if e.key != "" && unstarted(e.state) {
		if j.keys[e.key] == id {
			delete(j.keys, e.key)
		}
		e.key, e.payload = "", ""
	}
}

func unstarted(s wire.JournalState) bool {
	return s == wire.JNever || s == wire.JRefused || s == wire.JStartFailed
}

// first finds the execution that a key stands for.
func (j *journal) first(key string) (event.ExecutionID, entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	id, ok := j.keys[key]
	if !ok {
		return "", entry{}, false
	}
	return id, *j.entries[id], true
}

// repeat answers an offer whose key stands for an execution already: with that one, or with a
// conflict where the key was given for something else. Nothing of the offer is started, and the
// journal says so before it is answered.
func (r *Runner) repeat(o wire.Offer) (wire.OfferReply, bool) {
	if o.Key == "" {
		return wire.OfferReply{}, false
	}
	id, known, ok := r.journal.first(o.Key)
	if !ok || id == o.ID {
		return wire.OfferReply{}, false
	}
	if known.payload != o.Payload {
		return r.refuse(o, fault.New(fault.IdempotencyConflict, "this idempotency_key was given for another call; nothing was started").
			WithField("idempotency_key").WithNext("use a new key for another call, or repeat the first one with the arguments that it had")), true
	}
	if e, told := r.journal.find(o.ID); !told || e.state != wire.JRefused {
		if err := r.journal.step(record{ID: o.ID, State: wire.JRefused, Digest: o.Digest, Instance: r.instance}, false); err != nil {
			return wire.OfferReply{State: wire.JRefused, Fault: unwritable(err)}, true
		}
	}
	return wire.OfferReply{State: wire.JRefused, First: id}, true
}

func unwritable(err error) *fault.Error {
	return fault.Wrap(err, fault.StorageFull, "the Runner's journal cannot be written; nothing was started")
}
