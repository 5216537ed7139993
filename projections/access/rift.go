package access

import (
	"crypto/sha256"
	"encoding/binary"

	"webcodex/eventlog/event"
)

// rift is a commit behind which another history begins: the log came from a backup, whose
// original may have gone on, or an unclean stop took its newest commits. Numbers that nobody
// here knows of may have been given out then, so every counter jumps (decision 23).
type rift struct {
	seq   uint64
	epoch string // of what follows
	lost  bool   // by an unclean stop
}

// mark is where an owner's counter stood after the commit seq. What rifts lie behind that
// commit have moved it on.
type mark struct{ number, seq uint64 }

// everybody is the owner of no number. Its counter is where that of a principal begins of which
// nothing is known yet: who lived in a lost part of history alone has numbers too.
var everybody owner

// jump gives the number behind which a counter goes on after a rift, MaxRefNumber where none is
// left. It is never less for a greater number, begins a page of its own, and depends on the
// epoch, so that two histories with one beginning go on at different places.
func (x rift) jump(number uint64) uint64 {
	const pages = event.MaxRefNumber / event.RefsPage // whole ones
	least, share := uint64(restoredPages), uint64(restoredShare)
	if x.lost {
		least, share = lostPages, lostShare
	}
	page := (number+event.RefsPage-1)/event.RefsPage + least
	if page >= pages {
		return event.MaxRefNumber
	}
	sum := sha256.Sum256([]byte("webcodex.ref-jump.v1\x00" + x.epoch))
	page += (pages - page) / share * uint64(binary.BigEndian.Uint32(sum[:])) >> 32
	return page * event.RefsPage
}

// after gives the counter of a mark behind the rifts.
func (m mark) after(rifts []rift) uint64 {
	n := m.number
	for _, x := range rifts {
		if x.seq > m.seq {
			n = x.jump(n)
		}
	}
	return n
}

// best is the mark that reaches farther, or tells of the same later.
func best(rifts []rift, marks ...mark) (far mark) {
	for _, m := range marks {
		a, b := m.after(rifts), far.after(rifts)
		if a > b || a == b && m.seq > far.seq {
			far = m
		}
	}
	return far
}

// applyLog notes where another history begins.
func (r *Refs) applyLog(seq uint64, c event.Commit) {
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.LogRestored:
			r.breaks(rift{seq, e.Epoch, false})
		case event.LogTailLost:
			r.breaks(rift{seq, e.Epoch, true})
		default: // changes no history
		}
	}
}

// breaks adds a rift. Readers may hold what there was.
func (r *Refs) breaks(x rift) {
	r.rifts = append(r.rifts[:len(r.rifts):len(r.rifts)], x)
	r.dirty.rifts = append(r.dirty.rifts, x)
}
