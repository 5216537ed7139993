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

// onlyKnown reports that every child of this process is one that an execution waits for.
func (f *family) onlyKnown() bool {
	children, ok := f.children()
	if !ok {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pid := range children {
		if _, known := f.known[pid]; !known {
			return false
		}
	}
	return true
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
	if noChildren() {
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
	if len(seen) > 0 && !f.armed {
		f.armed = true
		time.AfterFunc(strangerAge+time.Second, func() {
			f.mu.Lock()
			f.armed = false
			f.mu.Unlock()
			f.sweep()
		})
	}
}
