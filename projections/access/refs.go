package access

import (
	"sync"

	"webcodex/eventlog/event"
)

// Target is what a ref pins: a Session or a Project, and the fingerprint of what it was then.
type Target struct {
	Session event.SessionID  // of a session_ref
	Project event.ProjectRef // of a project_ref
	// Pin is the Session's incarnation, or the Project's root fingerprint.
	Pin string
}

// SessionTarget is one incarnation of a Session.
func SessionTarget(id event.SessionID, nonce string) Target {
	return Target{Session: id, Pin: event.Incarnation(id, nonce)}
}

// ProjectTarget is a Project with the root it has.
func ProjectTarget(ref event.ProjectRef, root string) Target {
	return Target{Project: ref, Pin: root}
}

// valid reports whether t can be pinned by a ref of the kind.
func (t Target) valid(k event.RefKind) bool {
	switch k {
	case event.RefSession:
		return t.Session.Valid() && t.Project.Zero() && event.ValidFingerprint(t.Pin)
	case event.RefProject:
		return t.Session == "" && !t.Project.Zero() && t.Pin != ""
	}
	return false
}

// owner is whose numbers of which kind: the scope of a counter (SES-07).
type owner struct {
	principal string
	kind      event.RefKind
}

type key struct {
	owner
	number uint64
}

type held struct {
	owner
	target Target
}

// row is a bound number. Seq is of the commit that says so: the binding, or the page carried.
type row struct {
	target Target
	seq    uint64
}

// Refs folds which principal's numbers are taken and what they pin. What the file holds is
// read from there, so memory holds what is newer alone. A number once bound keeps its target
// for ever (SES-11). It is safe for concurrent use.
type Refs struct {
	mu      sync.RWMutex
	applied uint64
	dirty   changes // since the last capture
	writing changes // captured; the file may have it or not
	file    rows    // zero: everything is in memory
	rifts   []rift  // all there are, oldest first; never changed in place
}

// NewRefs is an empty fold; feed it through Apply.
func NewRefs() *Refs { return &Refs{dirty: newChanges(), writing: newChanges()} }

// changes are folded facts, newest first where two of them overlap.
type changes struct {
	refs map[key]row
	by   map[held]uint64 // the least number that pins the target
	last map[owner]mark
	gone map[event.SessionID]bool // Sessions that no number pins any more
	// rifts are among those of Refs.
	rifts []rift
}

func newChanges() changes {
	return changes{refs: map[key]row{}, by: map[held]uint64{}, last: map[owner]mark{}, gone: map[event.SessionID]bool{}}
}

func (c changes) empty() bool { return len(c.refs)+len(c.last)+len(c.gone)+len(c.rifts) == 0 }

// Apply folds one commit (eventlog.Fold).
func (r *Refs) Apply(seq uint64, _ string, c event.Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq <= r.applied {
		return
	}
	r.applied = seq
	switch c.Aggregate.Domain {
	case event.DomainSession:
		r.applySession(seq, c)
	case event.DomainAccess:
		r.applyAccess(seq, c)
	case event.DomainRetention:
		r.applyRetention(c)
	case event.DomainLog:
		r.applyLog(seq, c)
	case event.DomainProject: // names no refs
	}
}

// applyRetention forgets what pins a Session whose tombstone has gone: nothing answers for it
// any more (SES-39), and the map stays within what is retained. Its number stays taken.
func (r *Refs) applyRetention(c event.Commit) {
	for _, e := range c.Events {
		if d, ok := e.(event.TombstonesDropped); ok {
			for _, id := range d.Sessions {
				r.dirty.gone[id] = true
			}
		}
	}
}

// applySession binds the number that a fresh Session's own commit names.
func (r *Refs) applySession(seq uint64, c event.Commit) {
	if c.Version != 1 {
		return // only the commit that creates says which incarnation is meant
	}
	id := event.SessionID(c.Aggregate.ID)
	var created *event.SessionCreated
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.SessionCreated:
			created = &e
		case event.SessionRefBound:
			if created != nil {
				r.bind(key{owner{e.Principal, event.RefSession}, e.Number}, row{SessionTarget(id, created.Nonce), seq})
			}
		default: // names no ref
		}
	}
}

func (r *Refs) applyAccess(seq uint64, c event.Commit) {
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.RefReserved:
			r.reserve(owner{e.Principal, e.Kind}, mark{e.Number, seq})
		case event.RefBound:
			r.bind(key{owner{e.Principal, e.Kind}, e.Number}, row{Target{e.Session, e.Project, e.Pin}, seq})
		default: // principals and tokens are another fold's
		}
	}
	r.applyCarried(seq, c)
}

// applyCarried takes a page brought forward. It only adds: a number keeps what it has. A page
// fits one part.
func (r *Refs) applyCarried(seq uint64, c event.Commit) {
	_, state := event.Gather{}.Next(c)
	if state == nil {
		return
	}
	p, ok := readPage(*state)
	if !ok {
		return // drops itself only
	}
	o := owner{p.Principal, p.Kind}
	r.reserve(o, mark{max(p.Last, p.Floor), seq})
	r.reserve(everybody, mark{p.Fresh, seq})
	for _, x := range p.Refs {
		r.bind(key{o, x.Number}, row{x.target(), seq})
	}
}

func (r *Refs) reserve(o owner, m mark) {
	if m.number > 0 && m.number <= event.MaxRefNumber {
		r.dirty.last[o] = best(r.rifts, r.dirty.last[o], m)
	}
}

func (r *Refs) bind(k key, x row) {
	if k.principal == "" || k.number == 0 || k.number > event.MaxRefNumber || !x.target.valid(k.kind) {
		return // malformed: it drops itself only
	}
	r.reserve(k.owner, mark{k.number, x.seq})
	if r.forgotten(x.target) {
		return
	}
	if old, ok := r.overlay(k); ok && old.target != x.target {
		return // never pointed at something else (SES-11)
	}
	r.dirty.refs[k] = x
	h := held{k.owner, x.target}
	if n, ok := r.dirty.by[h]; !ok || k.number < n {
		r.dirty.by[h] = k.number
	}
}

// forgotten reports whether the target has gone for good.
func (r *Refs) forgotten(t Target) bool {
	return t.Session != "" && (r.dirty.gone[t.Session] || r.writing.gone[t.Session])
}

func (r *Refs) overlay(k key) (row, bool) {
	if x, ok := r.dirty.refs[k]; ok {
		return x, true
	}
	x, ok := r.writing.refs[k]
	return x, ok
}
