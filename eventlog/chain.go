package eventlog

import (
	"maps"
	"slices"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Reasons of damage.
const (
	damageVersion    = "version_gap"       // a version is missing or doubled
	damagePrev       = "chain_broken"      // a commit does not name the hash of the one before
	damageUnreadable = "commit_unreadable" // not a commit, or of a newer program
	damageSubject    = "foreign_commit"    // stored under another aggregate's subject
	damageFlipped    = "flipped_byte"      // a stored byte is not the one that was written
)

// Damage tells of an aggregate whose chain does not hold. It is closed for decisions; what
// the folds show of it ends before Seq.
type Damage struct {
	Aggregate string `json:"aggregate"`
	Seq       uint64 `json:"seq"` // the first commit that does not fit
	Reason    string `json:"reason"`
}

// chain checks the commits of every aggregate in sequence order and keeps where each ends.
// One damaged aggregate does not touch the others.
type chain struct {
	heads   map[event.Aggregate]Head
	damaged map[event.Aggregate]Damage
}

func newChain() *chain {
	return &chain{heads: map[event.Aggregate]Head{}, damaged: map[event.Aggregate]Damage{}}
}

func (c *chain) head(a event.Aggregate) (Head, error) {
	if d, bad := c.damaged[a]; bad {
		return Head{}, d.fault()
	}
	return c.heads[a], nil
}

// add checks one commit. False means that the aggregate is damaged, by this commit or
// before, and that no fold may see it. A commit that cannot be decoded comes with ok false.
func (c *chain) add(a event.Aggregate, seq uint64, hash string, commit event.Commit, ok bool) bool {
	if _, bad := c.damaged[a]; bad {
		return false
	}
	head := c.heads[a]
	reason := ""
	switch {
	case !ok:
		reason = damageUnreadable
	case commit.Aggregate != a:
		reason = damageSubject
	case commit.Version != head.Version+1:
		reason = damageVersion
	case commit.Prev != head.Hash:
		reason = damagePrev
	}
	if reason != "" {
		c.damaged[a] = Damage{Aggregate: a.String(), Seq: seq, Reason: reason}
		return false
	}
	c.heads[a] = Head{Version: commit.Version, Seq: seq, Hash: hash}
	return true
}

// list gives the damaged aggregates in order of their names.
func (c *chain) list() []Damage {
	return slices.SortedFunc(maps.Values(c.damaged), func(a, b Damage) int { return strings.Compare(a.Aggregate, b.Aggregate) })
}

func (d Damage) fault() *fault.Error {
	return fault.New(fault.LogDamaged, "the log of this record is damaged at sequence %d", d.Seq).
		WithReason(d.Reason).With("seq", d.Seq).
		WithNext("run webcodex doctor; the files are left as they are, restore the data directory from a backup")
}
