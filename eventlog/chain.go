package eventlog

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Reasons of damage.
const (
	damageVersion    = "version_gap"       // a version is missing or doubled
	damagePrev       = "chain_broken"      // a commit does not name the hash of the one before
	damageUnreadable = "commit_unreadable" // not a commit, or of a newer program
	damageSubject    = "foreign_commit"    // stored under another aggregate's subject
	damageCarry      = "state_missing"     // its beginning was pruned and no carried state follows
)

// Damage tells of an aggregate whose chain does not hold. It is closed for decisions; what
// the folds show of it ends before Seq.
type Damage struct {
	Aggregate string `json:"aggregate"`
	Seq       uint64 `json:"seq"` // the first commit that does not fit
	Reason    string `json:"reason"`
}

// verdict is what the chain makes of a commit.
type verdict int

const (
	given    verdict = iota // for the folds
	withheld                // fits, but no fold may see it before its aggregate has a state
	broke                   // damages its aggregate
	closed                  // of an aggregate that is damaged
)

// errHalfCarried tells that a base was left among the parts of a carried state.
var errHalfCarried = errors.New("the read models were left among the parts of a carried state")

// chain checks the commits of every aggregate in sequence order and knows where each ends:
// in memory for what was touched a short while ago, in the base for the rest. One damaged
// aggregate does not touch the others.
type chain struct {
	base Base // nil: memory holds every head
	// pruned tells that the log's beginning is gone, so an aggregate may begin anywhere.
	pruned bool

	mu sync.RWMutex
	// young and old are two generations of heads. A zero head: the aggregate has none.
	young, old map[event.Aggregate]Head
	turns      uint64 // of the generations
	whole      bool   // what is not in memory has no head
	known      int    // aggregates with a head
	damaged    map[event.Aggregate]Damage
	carries    map[event.Aggregate]carry // states being carried, of aggregates with a head

	// Of the start alone.
	floats map[event.Aggregate]*float
	gone   map[event.Aggregate]struct{} // removed Sessions without a state
}

// carry follows the parts of one state.
type carry struct {
	gather event.Gather
	from   uint64 // sequence of the first part
}

// next takes the aggregate's next commit; whole tells that it completes a state.
func (c carry) next(seq uint64, commit event.Commit) (_ carry, whole bool) {
	if part, ok := event.CarriedIn(commit); ok && part.Part == 1 {
		c.from = seq
	}
	g, state := c.gather.Next(commit)
	return carry{gather: g, from: c.from}, state != nil
}

// float is an aggregate whose beginning was pruned and whose carried state is not complete.
type float struct {
	carry
	head  Head   // zero: not even one commit was checked
	seq   uint64 // of the first commit seen
	known bool   // a part was handed out: the base has a head of it
	cut   bool   // the base was left in it, so there may have been parts before
}

func newChain(base Base) *chain {
	return &chain{base: base, whole: true, young: map[event.Aggregate]Head{}, old: map[event.Aggregate]Head{},
		damaged: map[event.Aggregate]Damage{}, carries: map[event.Aggregate]carry{},
		floats: map[event.Aggregate]*float{}, gone: map[event.Aggregate]struct{}{}}
}

// resume begins after the base's checkpoint.
func (c *chain) resume(known int, damaged []Damage) {
	c.whole, c.known = false, known
	for _, d := range damaged {
		if a, ok := event.ParseAggregate(d.Aggregate); ok {
			c.damaged[a] = d
		}
	}
}

// head is where an aggregate ends. The usual one was touched a moment ago.
func (c *chain) head(a event.Aggregate) (Head, error) {
	c.mu.RLock()
	d, bad := c.damaged[a]
	h, ok := c.young[a]
	c.mu.RUnlock()
	switch {
	case bad:
		return Head{}, d.fault()
	case ok:
		return h, nil
	}
	b, _, err := c.find(a)
	if err == nil && b.Seq > 0 && b.Root == 0 {
		err = Damage{Seq: b.Seq, Reason: damageCarry}.fault()
	}
	return b.Head, err
}

// find looks in memory, then in the base, and keeps what it found there. A head that memory
// holds always counts as one with a root.
func (c *chain) find(a event.Aggregate) (BaseHead, bool, error) {
	for {
		c.mu.Lock()
		h, ok := c.young[a]
		if !ok {
			if h, ok = c.old[a]; ok {
				delete(c.old, a)
				c.young[a] = h
			}
		}
		turn, whole := c.turns, c.whole
		c.mu.Unlock()
		if ok || whole {
			return BaseHead{Head: h, Root: h.Seq}, h.Seq > 0, nil
		}
		b, has, err := c.base.Head(a)
		if err != nil {
			return BaseHead{}, false, fault.Wrap(err, fault.Unavailable, "the read models cannot tell where a record ends").
				WithNext("restart WebCodex; if it stays, remove state.db: it is made again from the log")
		}
		if !has {
			b = BaseHead{}
		}
		c.mu.Lock()
		if _, moved := c.young[a]; moved || c.turns != turn {
			c.mu.Unlock() // a commit may have come since the base was asked
			continue
		}
		if !has || b.Root > 0 {
			c.young[own(a)] = b.Head
		}
		c.mu.Unlock()
		return b, has, nil
	}
}

// turn ends a generation: heads that nobody touched for two of them are dropped, if the base
// has them. An entry lives long enough for Append to look it up and for the committer to look
// again, so that the committer hardly ever asks the base.
func (c *chain) turn(held uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young)+len(c.old) == 0 {
		return
	}
	for a, h := range c.old {
		if h.Seq > held {
			c.young[a] = h
		}
	}
	c.old, c.young = c.young, map[event.Aggregate]Head{}
	c.turns++
}

// add checks one commit of the start or of a replay.
func (c *chain) add(r record) (Applied, verdict, error) {
	if c.bad(r.agg) {
		return Applied{}, closed, nil
	}
	f := c.floats[r.agg]
	if _, gone := c.gone[r.agg]; gone {
		return Applied{}, withheld, nil
	}
	if f == nil {
		head, has, err := c.find(r.agg)
		if err != nil {
			return Applied{}, closed, err
		}
		if has && head.Root == 0 {
			f = &float{seq: r.seq, known: true, cut: true}
		} else if f = c.begins(r, has); f == nil {
			return c.addNext(r, head.Head, has)
		}
		c.floats[own(r.agg)] = f
	}
	return c.addFloat(r, f)
}

// begins tells whether a commit is the first to be seen of an aggregate whose beginning was
// pruned. The log's own aggregate carries nothing.
func (c *chain) begins(r record, has bool) *float {
	if has || !c.pruned || !r.ok || r.commit.Aggregate != r.agg || r.commit.Version <= 1 || r.agg.Domain == event.DomainLog {
		return nil
	}
	return &float{seq: r.seq, cut: !c.whole}
}

// addNext checks a commit of an aggregate that begins with it or has a state.
func (c *chain) addNext(r record, head Head, has bool) (Applied, verdict, error) {
	anywhere := !has && c.pruned && r.agg.Domain == event.DomainLog
	if reason := misfit(r, head, anywhere); reason != "" {
		return c.breaks(r.agg, r.seq, reason)
	}
	if c.pruned {
		c.remove(r.commit)
	}
	return c.moved(r.agg, r.seq, r.hash, r.commit, !has), given, nil
}

// misfit is why a commit does not follow a head.
func misfit(r record, head Head, anywhere bool) string {
	switch {
	case !r.ok:
		return damageUnreadable
	case r.commit.Aggregate != r.agg:
		return damageSubject
	case anywhere:
		return ""
	case r.commit.Version != head.Version+1:
		return damageVersion
	case r.commit.Prev != head.Hash:
		return damagePrev
	}
	return ""
}

// breaks closes an aggregate.
func (c *chain) breaks(a event.Aggregate, seq uint64, reason string) (Applied, verdict, error) {
	c.mu.Lock()
	c.damaged[own(a)] = Damage{Aggregate: a.String(), Seq: seq, Reason: reason}
	c.mu.Unlock()
	delete(c.floats, a)
	return Applied{}, broke, nil
}

// moved takes in a commit that fits, where nobody decides yet: at the start and in a replay.
func (c *chain) moved(a event.Aggregate, seq uint64, hash string, commit event.Commit, first bool) Applied {
	out := c.take(a, seq, hash, commit, first)
	c.ends(out)
	return out
}

// ends moves an aggregate's head to a commit that was taken. The committer feeds the folds in
// between: whoever sees a head sees at least the state that belongs to it, so that nothing is
// decided on an older one.
func (c *chain) ends(ap Applied) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := ap.Commit.Aggregate
	if _, ok := c.young[a]; !ok {
		delete(c.old, a)
		a = own(a)
	}
	c.young[a] = Head{Version: ap.Commit.Version, Seq: ap.Seq, Hash: ap.Hash}
}

// take takes in a commit that fits; ends makes it the aggregate's head.
func (c *chain) take(a event.Aggregate, seq uint64, hash string, commit event.Commit, first bool) Applied {
	out := Applied{Seq: seq, Hash: hash, Commit: commit, First: first}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first {
		c.known++
		out.Root = seq
	}
	follows, whole := c.carries[a].next(seq, commit)
	switch {
	case whole:
		out.Root = follows.from
		delete(c.carries, a)
	case !follows.gather.Empty():
		c.carries[own(a)] = follows
	default:
		delete(c.carries, a)
	}
	if a.Domain == event.DomainLog && slices.ContainsFunc(commit.Events, isPruned) {
		out.Root = seq
	}
	return out
}

// isPruned tells log.pruned, which repeats what the log needs to know of itself.
func isPruned(e event.Event) bool {
	_, ok := e.(event.LogPruned)
	return ok
}

// addFloat checks a commit of an aggregate that has no state yet.
func (c *chain) addFloat(r record, f *float) (Applied, verdict, error) {
	if reason := misfit(r, f.head, f.head.Version == 0); reason != "" {
		return c.breaks(r.agg, r.seq, reason)
	}
	c.remove(r.commit)
	f.head = Head{Version: r.commit.Version, Seq: r.seq, Hash: r.hash}
	part, ok := event.CarriedIn(r.commit)
	if ok && part.Part > 1 && f.cut && f.gather.Empty() {
		return Applied{}, withheld, errHalfCarried
	}
	f.cut = false
	follows, whole := f.next(r.seq, r.commit)
	f.carry = follows
	switch {
	case whole:
		delete(c.floats, r.agg)
		out := c.moved(r.agg, r.seq, r.hash, r.commit, !f.known)
		out.Root = follows.from
		return out, given, nil
	case follows.gather.Empty() && r.agg.Domain != event.DomainRetention:
		return Applied{}, withheld, nil
	}
	// What retention says is about Sessions, which may have their own beginning behind the cut.
	out := Applied{Seq: r.seq, Hash: r.hash, Commit: r.commit, First: !f.known}
	if !f.known {
		f.known = true
		c.mu.Lock()
		c.known++
		c.mu.Unlock()
	}
	return out, given, nil
}

// remove forgets the Sessions that a commit removes, and the reports about them: nothing of them
// needs to be carried.
func (c *chain) remove(commit event.Commit) {
	for _, e := range commit.Events {
		e, ok := e.(event.SessionRemoved)
		if !ok {
			continue
		}
		for _, a := range []event.Aggregate{event.SessionAggregate(e.Session), event.ExternalAggregate(e.Session)} {
			if _, ok := c.floats[a]; ok {
				delete(c.floats, a)
				c.gone[own(a)] = struct{}{}
			}
		}
	}
}

// settle ends the start: what still has no state is closed. It gives what it closed.
func (c *chain) settle() []Damage {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Damage
	for a, f := range c.floats {
		d := Damage{Aggregate: a.String(), Seq: f.seq, Reason: damageCarry}
		c.damaged[a] = d
		out = append(out, d)
	}
	c.floats, c.gone = map[event.Aggregate]*float{}, map[event.Aggregate]struct{}{}
	c.whole = c.base == nil
	return sorted(out)
}

// list gives the damaged aggregates in order of their names.
func (c *chain) list() []Damage {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return sorted(slices.Collect(maps.Values(c.damaged)))
}

// count is the number of aggregates with a head.
func (c *chain) count() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known
}

// bad tells whether an aggregate is closed.
func (c *chain) bad(a event.Aggregate) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, bad := c.damaged[a]
	return bad
}

// damage is why an aggregate is closed.
func (c *chain) damage(a event.Aggregate) Damage {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.damaged[a]
}

func sorted(list []Damage) []Damage {
	slices.SortFunc(list, func(a, b Damage) int { return strings.Compare(a.Aggregate, b.Aggregate) })
	return list
}

// own is an aggregate whose name holds no other memory: a decoded one lies inside its commit.
func own(a event.Aggregate) event.Aggregate {
	return event.Aggregate{Domain: event.Domain(strings.Clone(string(a.Domain))), ID: strings.Clone(a.ID)}
}

func (d Damage) fault() *fault.Error {
	return fault.New(fault.LogDamaged, "the log of this record is damaged at sequence %d", d.Seq).
		WithReason(d.Reason).With("seq", d.Seq).
		WithNext("run webcodex doctor; the files are left as they are, restore the data directory from a backup")
}
