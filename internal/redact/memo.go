package redact

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	// memoSlots of each memo; the texts in one hold 64 KiB at most.
	memoSlots = 1024
	// maxMemoBytes of a text that is remembered: names of tools and programs, short paths.
	maxMemoBytes = 64
)

// memo remembers texts that a rule leaves as they are: a fold of the log meets the same names
// and paths again and again. What a rule would change never enters.
type memo [memoSlots]atomic.Pointer[string]

var memoSeed = maphash.MakeSeed()

// has reports whether s was kept, and the slot that it belongs in; nil: s is too long.
func (m *memo) has(s string) (slot *atomic.Pointer[string], ok bool) {
	if len(s) > maxMemoBytes {
		return nil, false
	}
	slot = &m[maphash.String(memoSeed, s)%memoSlots]
	p := slot.Load()
	return slot, p != nil && *p == s
}

// keep remembers s, which is not to hold the larger text alive that it may be part of.
func keep(slot *atomic.Pointer[string], s string) {
	if slot != nil {
		s = strings.Clone(s)
		slot.Store(&s)
	}
}
