package proc

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// own keeps the children of this process that are known, and collects orphans that fell to
// it and ended: nobody else will.
var own = &family{known: map[int]bool{}, strangers: map[Identity]time.Time{}}

type family struct {
	once      sync.Once
	mu        sync.Mutex
	known     map[int]bool           // whether another execution ran at the same time
	strangers map[Identity]time.Time // dead children of unknown origin, first seen
	armed     bool
	swept     time.Time // the last look for dead orphans
}

func (f *family) add(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for other := range f.known {
		f.known[other] = true
	}
	f.known[pid] = len(f.known) > 0
}

// alone reports that no other execution has run since this one began.
func (f *family) alone(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared, known := f.known[pid]
	return known && !shared
}

func (f *family) remove(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, pid)
}

func (f *family) has(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.known[pid]
	return known
}

// suspect reports that a child of this process, or one below it, may belong to an execution that
// has ended: one that no execution waits for, and that is not plainly of another.
func (f *family) suspect(m matcher) bool {
	children, ok := f.children()
	if !ok {
		return true
	}
	for _, pid := range children {
		if f.has(pid) {
			continue
		}
		st, there := readStat(pid)
		if there && st.state != 'Z' && st.state != 'X' && (m.belongs(st) || orphan(st) != notOurs) {
			return true
		}
	}
	return false
}

// children lists the children of all threads; ok is false where the kernel does not tell.
func (f *family) children() ([]int, bool) {
	var out []int
	for _, tid := range numbers("/proc/self/task") {
		raw, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/children")
		if err != nil {
			if _, gone := os.Stat("/proc/self/task/" + strconv.Itoa(tid)); gone != nil {
				continue
			}
			return nil, false
		}
		for field := range strings.FieldsSeq(string(raw)) {
			if pid, err := strconv.Atoi(field); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out, true
}

// sweep looks for dead orphans, if there is any child at all, and comes back while there are.
// A dead child that is somebody else's to wait for is given time for that.
func (f *family) sweep() {
	if noChildren() || !f.turn() {
		return
	}
	children, _ := f.children()
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	seen := map[Identity]time.Time{}
	for _, pid := range children {
		st, ok := readStat(pid)
		if _, known := f.known[pid]; !ok || st.state != 'Z' || known {
			continue
		}
		id := Identity{pid, st.start}
		first, old := f.strangers[id]
		if !old {
			first = now
		}
		if now.Sub(first) >= strangerAge {
			collect(pid)
			continue
		}
		seen[id] = first
	}
	f.strangers = seen
	if len(seen) > 0 {
		f.later(strangerAge + time.Second)
	}
}

// turn reports that it is time for another look: where many executions end at once, one look
// serves them all.
func (f *family) turn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.swept) >= sweepEvery {
		f.swept = now
		return true
	}
	f.later(sweepEvery)
	return false
}

// later comes back for a look, unless that is arranged already. The lock is held.
func (f *family) later(after time.Duration) {
	if f.armed {
		return
	}
	f.armed = true
	time.AfterFunc(after, func() {
		f.mu.Lock()
		f.armed = false
		f.mu.Unlock()
		f.sweep()
	})
}
