package state

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// change is what became of an aggregate's head since the file's row of it.
type change struct {
	head    eventlog.BaseHead // Version 0: no new commit; Root 0: the row's root stays
	first   bool              // there is no row
	removed bool
	damage  *eventlog.Damage
}

// then is both changes, one after the other.
func (c change) then(n change) change {
	if n.head.Version > c.head.Version {
		root := c.head.Root
		c.head = n.head
		if n.head.Root == 0 {
			c.head.Root = root
		}
	} else if n.head.Root > c.head.Root {
		c.head.Root = n.head.Root
	}
	c.first, c.removed = c.first || n.first, c.removed || n.removed
	if c.damage == nil {
		c.damage = n.damage
	}
	return c
}

// row is an aggregate's row in the table state_head.
type row struct {
	head    eventlog.BaseHead
	removed bool
	damage  eventlog.Damage // Seq 0: none
}

// with is the row after a change.
func (r row) with(c change) row {
	if c.head.Version > r.head.Version {
		root := r.head.Root
		r.head = c.head
		if c.head.Root == 0 {
			r.head.Root = root
		}
	} else {
		r.head.Root = max(r.head.Root, c.head.Root)
	}
	r.removed = r.removed || c.removed
	if c.damage != nil && r.damage.Seq == 0 {
		r.damage = *c.damage
	}
	return r
}

// living is the root by which an aggregate holds the log's beginning; 0: it does not. A
// damaged one that has no state holds it from where it is damaged.
func (r row) living(a string) uint64 {
	switch {
	case r.removed || a == event.LogAggregate().String():
		return 0
	case r.head.Root == 0:
		return r.damage.Seq
	}
	return r.head.Root
}

func (r row) hash(a string) int64 {
	removed := uint64(0)
	if r.removed {
		removed = 1
	}
	return new(Fields).Text(a).Uint(r.head.Version).Uint(r.head.Seq).Text(r.head.Hash).Uint(r.head.Root).Uint(removed).
		Uint(r.damage.Seq).Text(r.damage.Reason).Uint(r.living(a)).Hash()
}

// ownSchema are the tables of the file itself. living is 0 where nothing of the log is needed.
var ownSchema = []string{
	`CREATE TABLE state_checkpoint (one INTEGER PRIMARY KEY CHECK (one = 1), fold TEXT NOT NULL, seq INTEGER NOT NULL,
		commit_hash TEXT NOT NULL, epoch TEXT NOT NULL, aggregates INTEGER NOT NULL, at INTEGER NOT NULL,
		hash INTEGER NOT NULL)`,
	`CREATE TABLE state_head (aggregate TEXT PRIMARY KEY, version INTEGER NOT NULL, seq INTEGER NOT NULL, commit_hash TEXT NOT NULL,
		root INTEGER NOT NULL, removed INTEGER NOT NULL, damaged INTEGER NOT NULL, reason TEXT NOT NULL, living INTEGER NOT NULL,
		hash INTEGER NOT NULL) WITHOUT ROWID`,
	`CREATE INDEX state_head_living ON state_head (living, aggregate) WHERE living > 0`,
	`CREATE INDEX state_head_damaged ON state_head (aggregate) WHERE damaged > 0`,
}

const headColumns = `aggregate, version, seq, commit_hash, root, removed, damaged, reason, living, hash`

type scanner interface{ Scan(...any) error }

// scanHead reads a row; false: there is none.
func scanHead(s scanner) (a string, r row, ok bool, err error) {
	var living uint64
	var hash int64
	err = s.Scan(&a, &r.head.Version, &r.head.Seq, &r.head.Hash, &r.head.Root, &r.removed, &r.damage.Seq, &r.damage.Reason, &living, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return a, r, false, nil
	}
	if err != nil {
		return a, r, false, err
	}
	if r.damage.Seq > 0 {
		r.damage.Aggregate = a
	}
	if hash != r.hash(a) || living != r.living(a) {
		return a, r, false, ErrRow
	}
	return a, r, true, nil
}

// changed is what memory knows of an aggregate beyond its row.
func (k *Keeper) changed(a event.Aggregate) (change, bool) {
	w, writing := k.writing[a]
	d, dirty := k.heads[a]
	return w.then(d), writing || dirty
}

// Head implements eventlog.Base. A damaged row is an error, and the next start makes the file
// again.
func (k *Keeper) Head(a event.Aggregate) (eventlog.BaseHead, bool, error) {
	r, err := k.row(a)
	return r.head, r.head.Version > 0, err
}

// Living reports whether the log has a state of the aggregate, or is damaged where it had one,
// and it was not removed. The error is that of Head. An aggregate that was removed and one that
// never was take the same time: who asks may not be told them apart by it (SES-38).
func (k *Keeper) Living(a event.Aggregate) (bool, error) {
	k.mu.Lock()
	c, changed := k.changed(a)
	k.mu.Unlock()
	if !changed {
		var some bool
		if err := k.file.livingStmt().QueryRowContext(context.Background(), a.String()).Scan(&some); err == nil && !some {
			return false, nil
		}
	}
	if c.removed {
		return false, nil
	}
	r, err := k.row(a)
	return r.living(a.String()) > 0, err
}

// row is what the file and memory have of an aggregate together; the zero value: nothing.
func (k *Keeper) row(a event.Aggregate) (r row, err error) {
	k.mu.Lock()
	c, _ := k.changed(a)
	k.mu.Unlock()
	if !c.first {
		if _, r, _, err = scanHead(k.file.headStmt().QueryRowContext(context.Background(), a.String())); err != nil {
			k.Spoiled(err)
			return row{}, err
		}
	}
	return r.with(c), nil
}

// Damaged implements eventlog.Base.
func (k *Keeper) Damaged() ([]eventlog.Damage, error) {
	k.mu.Lock()
	found := map[string]eventlog.Damage{}
	for _, m := range []map[event.Aggregate]change{k.heads, k.writing} {
		for a, c := range m {
			if c.damage != nil {
				found[a.String()] = *c.damage
			}
		}
	}
	k.mu.Unlock()
	err := k.eachHead(`damaged > 0`, func(a string, r row) bool {
		found[a] = r.damage
		return true
	})
	out := make([]eventlog.Damage, 0, len(found))
	for _, d := range found {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b eventlog.Damage) int { return strings.Compare(a.Aggregate, b.Aggregate) })
	return out, err
}

// eachHead goes through the rows of a condition until fn has enough.
func (k *Keeper) eachHead(where string, fn func(string, row) bool, args ...any) error {
	rows, err := k.file.reads().Query(`SELECT `+headColumns+` FROM state_head WHERE `+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		a, r, _, err := scanHead(rows)
		if err != nil {
			k.Spoiled(err)
			return err
		}
		if !fn(a, r) {
			return nil
		}
	}
	return rows.Err()
}

// OldestLiving implements eventlog.Base.
func (k *Keeper) OldestLiving(before uint64) (eventlog.Living, bool, error) {
	k.mu.Lock()
	dirty := map[string]change{}
	for _, m := range []map[event.Aggregate]change{k.writing, k.heads} {
		for a, c := range m {
			dirty[a.String()] = dirty[a.String()].then(c)
		}
	}
	k.mu.Unlock()
	oldest, name := before, ""
	seen := func(a string, root uint64) {
		if root > 0 && root < oldest {
			oldest, name = root, a
		}
	}
	for a, c := range dirty {
		r := row{}
		if !c.first {
			var err error
			if _, r, _, err = scanHead(k.file.headStmt().QueryRow(a)); err != nil {
				k.Spoiled(err)
				return eventlog.Living{}, false, err
			}
		}
		seen(a, r.with(c).living(a))
	}
	err := k.eachHead(`living > 0 AND living < ? ORDER BY living, aggregate`, func(a string, r row) bool {
		if _, is := dirty[a]; is {
			return true
		}
		seen(a, r.living(a))
		return false
	}, oldest)
	if err != nil || name == "" {
		return eventlog.Living{}, false, err
	}
	agg, ok := event.ParseAggregate(name)
	if !ok {
		return eventlog.Living{}, false, ErrRow
	}
	return eventlog.Living{Aggregate: agg, Root: oldest}, true, nil
}
