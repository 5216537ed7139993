package proc

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// glance looks at the foreground of the process's terminal.
func (p *Process) glance(c *cell) glance {
	t := p.term
	t.mu.Lock()
	g := glance{typed: t.typed}
	t.mu.Unlock()
	g.at, g.output, g.group = time.Now(), p.c.Stdout.Total(), t.foreground()
	if g.group == 0 {
		return g
	}
	if now, err := t.modes(); err == nil {
		g.taken = now.canonical != t.before.canonical || now.echo != t.before.echo
	}
	all := onTerminals(c)
	own := encodeDevice(t.number)
	g.add(all, own, g.group)
	for tty, group := range inner(all, own, g.group) {
		// A program that keeps a terminal of its own for others always waits for both: only what
		// runs on that one tells whether anybody asks.
		n := glance{group: group}
		n.add(all, tty, group)
		g.asleep, g.reads, g.hidden = g.asleep && n.asleep, g.reads && n.reads, false
		g.cpu += n.cpu
	}
	return g
}

// onTerminals are the processes that may belong to the execution and have a terminal, by pid.
func onTerminals(c *cell) map[int]stat {
	pids := numbers("/proc")
	if inside := c.pids(); len(inside) > 0 {
		pids = pids[:0]
		for pid := range inside {
			pids = append(pids, pid)
		}
	}
	out := map[int]stat{}
	for _, pid := range pids {
		if st, ok := readStat(pid); ok && st.state != 'Z' && st.state != 'X' {
			out[pid] = st
		}
	}
	return out
}

// inner finds the terminals that descendants of a group have been given, with their foreground.
func inner(all map[int]stat, own, group int) map[int]int {
	out := map[int]int{}
	for _, st := range all {
		if st.tty == 0 || st.tty == own || st.foreground <= 0 {
			continue
		}
		for up, steps := st, 0; steps < maxAncestors; steps++ {
			parent, known := all[up.parent]
			if !known {
				break
			}
			if up = parent; up.group == group && up.tty == own {
				out[st.tty] = st.foreground
				break
			}
		}
	}
	return out
}

// add looks at each thread of a group on a terminal.
func (g *glance) add(all map[int]stat, tty, group int) {
	found := false
	for pid, st := range all {
		if st.group != group || st.tty != tty {
			continue
		}
		base := "/proc/" + strconv.Itoa(pid) + "/task/"
		threads := numbers(base)
		if len(threads) == 0 {
			g.asleep = false
			return // it ended meanwhile
		}
		for _, tid := range threads {
			one := thread{at: base + strconv.Itoa(tid), pid: pid, tty: tty}
			if !one.sleeps(&g.cpu) {
				g.asleep = false
				return
			}
			reads, seen := one.waitsForTerminal()
			g.reads, g.hidden = g.reads || reads, g.hidden || !seen
		}
		found = true
	}
	g.asleep = found
}

// thread is one that is looked at.
type thread struct {
	at  string // its directory
	pid int
	tty int // the terminal that it may wait for, as stat gives it
}

// sleeps reports that it waits for something that may never come, and adds what it has used.
func (t thread) sleeps(cpu *time.Duration) bool {
	st, ok := readStatAt(t.at)
	if !ok || st.state != 'S' {
		return false
	}
	if used, _, _ := strings.Cut(readSmall(t.at+"/schedstat"), " "); used != "" {
		n, _ := strconv.ParseInt(used, 10, 64)
		*cpu += time.Duration(n)
	} else {
		*cpu += time.Duration(st.ticks) * (time.Second / userHZ)
	}
	return true
}

// waitsForTerminal reports whether the thread waits for its terminal; seen is false where the
// kernel does not tell what it waits for.
func (t thread) waitsForTerminal() (waits, seen bool) {
	call, args, ok := parseCall(readSmall(t.at + "/syscall"))
	if !ok {
		return false, false
	}
	files, known := waitingCalls[call]
	if !known {
		return false, waitingCalls != nil
	}
	fds, seen := files(t, args)
	return slices.ContainsFunc(fds, t.isTerminal), seen
}

// parseCall reads the number of a system call and its arguments as /proc shows them.
func parseCall(text string) (call int64, args [6]uint64, ok bool) {
	f := strings.Fields(text)
	if len(f) == 0 {
		return 0, args, false
	}
	call, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || call >= 0 && len(f) < 7 {
		return 0, args, false // it runs, or it may not be looked at
	}
	for i := 0; call >= 0 && i < len(args); i++ {
		if args[i], err = strconv.ParseUint(f[i+1], 0, 64); err != nil {
			return 0, args, false
		}
	}
	return call, args, true
}

// isTerminal reports whether a file of the thread is its terminal.
func (t thread) isTerminal(fd int) bool {
	var st unix.Stat_t
	if unix.Stat(t.at+"/fd/"+strconv.Itoa(fd), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return false
	}
	// The name /dev/tty is whatever terminal the process has, and it has this one.
	return encodeDevice(st.Rdev) == t.tty || st.Rdev == unix.Mkdev(5, 0)
}

// encodeDevice is a device number as stat gives a terminal.
func encodeDevice(dev uint64) int {
	major, minor := int(unix.Major(dev)), int(unix.Minor(dev))
	return minor&0xff | major<<8 | (minor&^0xff)<<12
}

func readsFile(_ thread, a [6]uint64) ([]int, bool) { return []int{int(int32(a[0]))}, true }

func cannotTell(thread, [6]uint64) ([]int, bool) { return nil, false }

// restarted is a wait that was broken off, by a stop or a signal, and goes on.
func restarted(t thread, a [6]uint64) ([]int, bool) {
	if strings.Contains(readSmall(t.at+"/wchan"), "poll") {
		return pollsFiles(t, a)
	}
	return nil, true
}

func pollsFiles(t thread, a [6]uint64) (fds []int, ok bool) {
	const size = 8 // a descriptor, events, what came
	raw, ok := t.memory(a[0], min(a[1], maxWaited)*size)
	for ; len(raw) >= size; raw = raw[size:] {
		fd, events := int32(binary.NativeEndian.Uint32(raw)), binary.NativeEndian.Uint16(raw[4:])
		if fd >= 0 && events&(unix.POLLIN|unix.EPOLLRDNORM) != 0 {
			fds = append(fds, int(fd))
		}
	}
	return fds, ok
}

func selectsFiles(t thread, a [6]uint64) (fds []int, ok bool) {
	if a[1] == 0 {
		return nil, true
	}
	raw, ok := t.memory(a[1], (min(a[0], maxWaited)+63)/64*8)
	for i := 0; i < len(raw)*8 && i < int(a[0]); i++ {
		word := binary.NativeEndian.Uint64(raw[i/64*8:])
		if word>>(i%64)&1 != 0 {
			fds = append(fds, i)
		}
	}
	return fds, ok
}

// epollsFiles are those that a set waits for, and of sets in it too.
func epollsFiles(t thread, a [6]uint64) ([]int, bool) { return t.epoll(int(int32(a[0])), 2) }

func (t thread) epoll(set, depth int) (fds []int, ok bool) {
	raw, err := os.ReadFile(t.at + "/fdinfo/" + strconv.Itoa(set))
	if err != nil {
		return nil, false
	}
	for line := range bytes.Lines(raw) {
		f := bytes.Fields(line)
		if len(f) < 4 || string(f[0]) != "tfd:" || string(f[2]) != "events:" {
			continue
		}
		fd, err := strconv.Atoi(string(f[1]))
		events, everr := strconv.ParseUint(string(f[3]), 16, 64)
		if err != nil || everr != nil || events&(unix.EPOLLIN|unix.EPOLLRDNORM) == 0 {
			continue
		}
		fds = append(fds, fd)
		if link, _ := os.Readlink(t.at + "/fd/" + string(f[1])); depth > 1 && link == "anon_inode:[eventpoll]" {
			below, _ := t.epoll(fd, depth-1)
			fds = append(fds, below...)
		}
	}
	return fds, true
}

// memory reads what the process has at an address.
func (t thread) memory(at, size uint64) ([]byte, bool) {
	if size == 0 {
		return nil, true
	}
	out := make([]byte, size)
	f, err := os.Open("/proc/" + strconv.Itoa(t.pid) + "/mem")
	if err != nil {
		return nil, false
	}
	defer f.Close()
	n, err := unix.Pread(int(f.Fd()), out, int64(at))
	if err != nil || uint64(n) < size {
		return nil, false
	}
	return out, true
}
