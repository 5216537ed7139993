package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waitExit blocks until pid has ended, without collecting it, so that its id stays taken. It
// waits in the poller: a thread in a blocking wait keeps a processor from the other work.
func waitExit(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err == nil {
		f := os.NewFile(uintptr(fd), "pidfd")
		defer f.Close()
		if conn, cerr := f.SyscallConn(); cerr == nil {
			err = conn.Read(func(uintptr) bool { return hasExited(pid, unix.WNOHANG) })
		}
	}
	for err != nil && !hasExited(pid, 0) {
	}
}

// hasExited looks whether a child has ended; without WNOHANG it waits for it.
func hasExited(pid, flags int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|flags, nil)
	if errors.Is(err, unix.EINTR) {
		return false
	}
	return err != nil || info.Signo != 0
}

// childDir is a name under which a child enters the opened directory itself. It goes through
// this process and not through the child's self, whose entries would have to be made first.
func childDir(dir *os.File) string { return ownFiles + strconv.Itoa(int(dir.Fd())) }

var ownFiles = "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/"

// adopt makes orphaned descendants children of this process, where they can be found, and keeps
// what it was given open by whoever started it from its children.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// hasMembers is a cheap first look: almost every execution leaves nothing, and then a few
// system calls say so.
func (p *Process) hasMembers() bool {
	if syscall.Kill(-p.pid, 0) == nil || p.cell.populated() {
		return len(living(p.match())) > 0
	}
	if noChildren() {
		return false
	}
	// What is left of an execution hangs below a child of this process that nobody waits for:
	// where each of those is somebody else's, the whole table need not be looked through.
	m := p.match()
	return own.suspect(m) && len(living(m)) > 0
}

// noChildren reports that this process has no child, alive or dead.
func noChildren() bool {
	return errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD)
}

// members scans the process table.
func members(m matcher) []member {
	var out []member
	inside := map[int]bool{}
	for _, c := range m.cells {
		maps.Copy(inside, c.pids())
	}
	for _, pid := range numbers("/proc") {
		st, ok := readStat(pid)
		if !ok || pid == os.Getpid() {
			continue
		}
		if inside[pid] || m.belongs(st) || m.fell(st) == dying {
			out = append(out, member{pid: pid, parent: st.parent, start: st.start, name: st.name, zombie: st.state == 'Z' || st.state == 'X'})
		}
	}
	return out
}

func (m matcher) belongs(st stat) bool {
	for _, id := range []int{st.session, st.group} {
		leaderStart, named := m.sessions[id]
		if !named {
			continue
		}
		if leaderStart == 0 {
			return true
		}
		// Long after the fact the number may be another's: a living leader must be old enough
		// to be the one that was recorded; of a dead one a member alone keeps the number taken.
		if leader, alive := readStat(id); alive {
			if leader.start <= leaderStart {
				return true
			}
		} else if st.start+1 >= leaderStart {
			return true
		}
	}
	mark := markIn(st.pid)
	return mark != "" && m.marks(mark) || (len(m.pipes) > 0 || m.terminal != nil) && m.writes(st.pid) || m.fell(st) == fallen
}

func (m matcher) fell(st stat) int {
	if m.orphans == 0 || st.start < m.orphans {
		return notOurs
	}
	return orphan(st)
}

// contains is belongs for a process that may have ended and been replaced since it was found.
func (m matcher) contains(st stat) bool {
	return slices.ContainsFunc(m.cells, func(c *cell) bool { return c.holds(st.pid) }) || m.belongs(st)
}

// What is known of a child of this process that no execution waits for.
const (
	notOurs = iota
	// dying: whose it was cannot be told any more; what it leaves is not an orphan yet.
	dying
	fallen // from an execution, and it has shed all by which it could be told from which
)

// orphan tells what a process is. Helpers of our own have their setting or are in our session; a
// child that is being started is still this program; what may not be looked at has taken another
// identity, as no helper does.
func orphan(st stat) int {
	if st.parent != os.Getpid() || st.state == 'Z' || st.state == 'X' || st.session == ownSession() || own.has(st.pid) {
		return notOurs
	}
	at := "/proc/" + strconv.Itoa(st.pid)
	exe, err := os.Readlink(at + "/exe")
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fallen
	case err != nil:
		return dying
	case exe == ownProgram():
		return notOurs
	}
	environ, err := os.ReadFile(at + "/environ")
	if err != nil {
		return dying
	}
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if string(kv) == Helper || bytes.HasPrefix(kv, []byte(MarkVariable+"=")) {
			return notOurs
		}
	}
	return fallen
}

var ownSession = sync.OnceValue(func() int { id, _ := unix.Getsid(0); return id })

var ownProgram = sync.OnceValue(func() string { name, _ := os.Readlink("/proc/self/exe"); return name })

// orphans are those that began at a time or later, by name.
func orphans(since uint64) (out []string) {
	children, _ := own.children()
	for _, pid := range children {
		if st, ok := readStat(pid); ok && st.start >= since && orphan(st) == fallen && len(out) < maxNamed {
			out = append(out, name(pid, st.name))
		}
	}
	return out
}

// writes reports that a process holds the writing end of one of our pipes. A child that is
// being started holds copies of the reading ends for a moment; that does not count.
func (m matcher) writes(pid int) bool {
	base := "/proc/" + strconv.Itoa(pid)
	for _, fd := range numbers(base + "/fd") {
		link, err := os.Readlink(base + "/fd/" + strconv.Itoa(fd))
		if err != nil || !m.pipes[link] && !m.onTerminal(base+"/fd/"+strconv.Itoa(fd), link) {
			continue
		}
		info, err := os.ReadFile(base + "/fdinfo/" + strconv.Itoa(fd))
		if err != nil {
			continue
		}
		if _, rest, ok := bytes.Cut(info, []byte("flags:")); ok {
			word, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte("\n"))
			if flags, err := strconv.ParseUint(string(word), 8, 64); err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY {
				return true
			}
		}
	}
	return false
}

// onTerminal reports that a file is the terminal of the execution itself. Its name alone would not
// tell: a container has terminals of the same names.
func (m matcher) onTerminal(file, link string) bool {
	var st unix.Stat_t
	return m.terminal != nil && strings.HasPrefix(link, "/dev/pts/") && unix.Stat(file, &st) == nil &&
		uint64(st.Dev) == m.terminal.device && st.Ino == m.terminal.inode
}

// pipeNames are the pipes as /proc/N/fd shows them.
func pipeNames(files []*os.File) map[string]bool {
	out := map[string]bool{}
	for _, f := range files {
		conn, err := f.SyscallConn()
		if err != nil {
			continue
		}
		_ = conn.Control(func(fd uintptr) {
			if name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd))); err == nil {
				out[name] = true
			}
		})
	}
	return out
}

// signalMember signals the process that was matched and no other: the handle is opened first
// and the process looked at again.
func signalMember(one member, m matcher, s syscall.Signal) bool {
	fd, err := unix.PidfdOpen(one.pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		st, ok := readStat(one.pid)
		return ok && st.start == one.start && m.contains(st) && syscall.Kill(one.pid, s) == nil
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	st, ok := readStat(one.pid)
	if !ok || st.start != one.start || !m.contains(st) {
		return false
	}
	return unix.PidfdSendSignal(fd, s, nil, 0) == nil
}

// stat is the part of /proc/N/stat that is needed.
type stat struct {
	pid, parent, group, session int
	tty, foreground             int // the terminal's number, and the group that it listens to
	state                       byte
	ticks                       uint64 // used
	start                       uint64 // clock ticks since boot
	name                        string
}

func readStat(pid int) (stat, bool) {
	st, ok := readStatAt("/proc/" + strconv.Itoa(pid))
	st.pid = pid
	return st, ok
}

// readStatAt is readStat for a process's directory or a thread's.
func readStatAt(dir string) (stat, bool) {
	raw, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return stat{}, false
	}
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	f := bytes.Fields(raw[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, false
	}
	number := func(i int) int { n, _ := strconv.Atoi(string(f[i])); return n }
	start, err := strconv.ParseUint(string(f[19]), 10, 64)
	if err != nil {
		return stat{}, false
	}
	return stat{state: f[0][0], parent: number(1), group: number(2), session: number(3), tty: number(4), foreground: number(5),
		ticks: uint64(number(11) + number(12)), start: start, name: string(raw[open+1 : end])}, true
}

// identityOf names a child that is alive now. The clock is cheaper to read than the process.
func identityOf(pid int) Identity {
	return Identity{PID: pid, Start: uint64(BootTime() / (time.Second / userHZ))}
}

// userHZ is the unit of start times in /proc; it is the same on every architecture we build.
const userHZ = 100

// StartOf is the start time of a process, 0 where it cannot be read.
func StartOf(pid int) uint64 {
	st, _ := readStat(pid)
	return st.start
}

// markIn is the mark in a process's environment, empty where there is none or it is not ours
// to read.
func markIn(pid int) string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for kv := range bytes.SplitSeq(raw, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte(MarkVariable+"=")); ok {
			return string(v)
		}
	}
	return ""
}

func numbers(dir string) []int {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	out := make([]int, 0, len(names))
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
