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
	known     map[int]bool
	strangers map[Identity]time.Time // dead children of unknown origin, first seen
	armed     bool
}

func (f *family) add(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[pid] = true
}

func (f *family) remove(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, pid)
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
		if !f.known[pid] {
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
		if !ok || st.state != 'Z' || f.known[pid] {
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
