package access

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"webcodex/eventlog/event"
)

// Resolve gives what the principal's own number pins; false: nothing (SES-07). Errors: the
// file cannot be read.
func (r *Refs) Resolve(ctx context.Context, principal string, kind event.RefKind, number uint64) (Target, bool, error) {
	k := key{owner{principal, kind}, number}
	r.mu.RLock()
	x, ok := r.overlay(k)
	file := r.file
	r.mu.RUnlock()
	if file.on() {
		// The file comes second, since what leaves memory is in it by then, and it wins: it is older.
		old, found, err := file.ref(ctx, k)
		if err != nil {
			return Target{}, false, err
		}
		if found {
			x.target, ok = old, true
		}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !ok || r.forgotten(x.target) {
		return Target{}, false, nil
	}
	return x.target, true, nil
}

// Find gives the number under which the principal knows the target, 0: none (SES-18).
func (r *Refs) Find(ctx context.Context, principal string, kind event.RefKind, t Target) (uint64, error) {
	h := held{owner{principal, kind}, t}
	r.mu.RLock()
	n, m := r.dirty.by[h], r.writing.by[h]
	file, gone := r.file, r.forgotten(t)
	r.mu.RUnlock()
	if gone {
		return 0, nil
	}
	if n == 0 || m != 0 && m < n {
		n = m
	}
	if !file.on() {
		return n, nil
	}
	if old, err := file.find(ctx, h); err != nil || old != 0 {
		return old, err
	}
	return n, nil
}

// Last is the number of the kind behind which the principal's counter goes on, 0: at the
// first. Numbers are given in order, and none twice (SES-11), also where another history began.
func (r *Refs) Last(ctx context.Context, principal string, kind event.RefKind) (uint64, error) {
	own, rifts, err := r.mark(ctx, owner{principal, kind})
	if err != nil {
		return 0, err
	}
	fresh, _, err := r.mark(ctx, everybody)
	return max(own.after(rifts), fresh.after(rifts)), err
}

// mark is the farthest of an owner, and the rifts that may have moved it on.
func (r *Refs) mark(ctx context.Context, o owner) (mark, []rift, error) {
	r.mu.RLock()
	m, rifts, file := best(r.rifts, r.dirty.last[o], r.writing.last[o]), r.rifts, r.file
	r.mu.RUnlock()
	if !file.on() {
		return m, rifts, nil
	}
	old, err := file.last(ctx, o)
	return best(rifts, m, old), rifts, err
}

// Carry gives the state of one page of refs, to be brought forward in its own commits, and the
// form it has. False: the aggregate is no page, or has no number.
func (r *Refs) Carry(ctx context.Context, a event.Aggregate) (form int, state []byte, ok bool, err error) {
	prefix, kind, number, ok := parsePage(a)
	if !ok {
		return 0, nil, false, nil
	}
	p := page{Kind: kind}
	from, to := number*event.RefsPage+1, (number+1)*event.RefsPage
	refs, last, err := r.collect(ctx, func(k key) bool {
		return k.kind == kind && k.number >= from && k.number <= to && strings.HasPrefix(k.principal, prefix)
	}, prefix, kind, from, to)
	if err != nil {
		return 0, nil, false, err
	}
	for k, x := range refs {
		if p.Principal != "" && p.Principal != k.principal {
			return 0, nil, false, errShared
		}
		p.Principal = k.principal
		p.Last = max(p.Last, k.number)
		if r.dropped(x.target) {
			continue
		}
		p.Refs = append(p.Refs, pageRef{k.number, x.target.Session, x.target.Project, x.target.Pin})
	}
	for principal, n := range last {
		if p.Principal != "" && p.Principal != principal {
			return 0, nil, false, errShared
		}
		p.Principal = principal
		if n >= from {
			p.Last = max(p.Last, min(n, to))
		}
		if n > to {
			p.Floor = n
		}
	}
	if p.Last == 0 {
		return 0, nil, false, nil
	}
	fresh, rifts, err := r.mark(ctx, everybody)
	if err != nil {
		return 0, nil, false, err
	}
	p.Fresh = fresh.after(rifts)
	state, err = p.state()
	return pageForm, state, err == nil, err
}

// errShared tells of two principals whose fingerprints begin alike: their commits stay.
var errShared = errors.New("a page of refs has two owners")

// collect gathers the rows of one page and its owner's counter, from the file and from memory.
func (r *Refs) collect(ctx context.Context, match func(key) bool, prefix string, kind event.RefKind, from, to uint64) (map[key]row, map[string]uint64, error) {
	refs, last := map[key]row{}, map[string]uint64{}
	r.mu.RLock()
	for _, c := range []changes{r.writing, r.dirty} {
		for k, x := range c.refs {
			if match(k) {
				refs[k] = x
			}
		}
		for o := range c.last {
			if o.kind == kind && strings.HasPrefix(o.principal, prefix) {
				last[o.principal] = 0
			}
		}
	}
	file := r.file
	r.mu.RUnlock()
	if file.on() {
		err := errors.Join(file.page(ctx, prefix, kind, from, to, refs),
			file.owners(ctx, prefix, kind, func(principal string) { last[principal] = 0 })) // no ref may be left of one
		if err != nil {
			return nil, nil, err
		}
	}
	for k := range refs {
		last[k.principal] = 0
	}
	for principal := range last {
		m, rifts, err := r.mark(ctx, owner{principal, kind})
		if err != nil {
			return nil, nil, err
		}
		last[principal] = m.after(rifts)
	}
	return refs, last, nil
}

// Pages lists the pages that hold a number bound by a commit before seq. Its commit may be a
// Session's, so the page's own chain does not tell: before the prefix that ends at seq leaves
// the log, these pages are to be carried too.
func (r *Refs) Pages(ctx context.Context, seq uint64) ([]event.Aggregate, error) {
	seen := map[event.Aggregate]bool{}
	add := func(k key) { seen[event.RefsAggregate(k.principal, k.kind, k.number)] = true }
	known := map[key]bool{} // in memory: its witness stays, or it has gone
	r.mu.RLock()
	for _, c := range []changes{r.writing, r.dirty} {
		for k, x := range c.refs {
			known[k] = x.seq >= seq || r.forgotten(x.target)
		}
	}
	file := r.file
	r.mu.RUnlock()
	if file.on() {
		err := file.before(ctx, seq, func(k key, name string) {
			if _, is := known[k]; !is && !r.dropped(Target{Session: event.SessionID(name)}) {
				add(k)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for k, stays := range known {
		if !stays {
			add(k)
		}
	}
	if len(seen) == 0 {
		if err := r.tellRifts(ctx, seq, add); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b event.Aggregate) int { return strings.Compare(a.ID, b.ID) }), nil
}

// tellRifts adds some page where the prefix that ends at seq takes the last word of where the
// counters of new principals begin: every page carried repeats it.
func (r *Refs) tellRifts(ctx context.Context, seq uint64, add func(key)) error {
	fresh, rifts, err := r.mark(ctx, everybody)
	if err != nil || fresh.seq >= seq || fresh.number == 0 && (len(rifts) == 0 || rifts[0].seq >= seq) {
		return err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, c := range []changes{r.dirty, r.writing} {
		for k := range c.refs {
			add(k)
			return nil
		}
	}
	if !r.file.on() {
		return nil
	}
	return r.file.any(ctx, add)
}

// dropped is forgotten for readers.
func (r *Refs) dropped(t Target) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.forgotten(t)
}
