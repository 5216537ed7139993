package proc

import (
	"bytes"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const zombieState = 5 // SZOMB

// waitExit polls until pid has ended, without collecting it, so that its id stays taken.
func waitExit(pid int) {
	for wait := time.Millisecond; ; wait = min(wait*2, 20*time.Millisecond) {
		k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil || k.Proc.P_stat == zombieState {
			return
		}
		time.Sleep(wait)
	}
}

// childDir is where the opened directory lies now: it has no other name to enter it by here.
func childDir(dir *os.File) string { return dir.Name() }

// family is what Linux needs to find orphans; here they go to launchd.
type family struct{ once sync.Once }

var own = &family{}

// adopt keeps what this process was given open by whoever started it from its children.
func adopt() {
	for fd := 3; fd < inheritedFiles; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC)
		}
	}
}

// inheritedFiles is how far a starter's open files are looked for.
const inheritedFiles = 256

func (f *family) add(int)        {}
func (f *family) remove(int)     {}
func (f *family) sweep()         {}
func (f *family) alone(int) bool { return false }

func orphans(uint64) []string { return nil }

// hasMembers looks at the group first; what left it is found by its mark.
func (p *Process) hasMembers() bool {
	if syscall.Kill(-p.pid, 0) != nil && within(p.drained, 0) {
		return false
	}
	return len(living(p.match())) > 0
}

func members(m matcher) []member {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	var out []member
	for i := range list {
		k := &list[i]
		if pid := int(k.Proc.P_pid); pid > 1 && pid != os.Getpid() && m.belongs(k) {
			out = append(out, member{pid: pid, parent: int(k.Eproc.Ppid), start: startTime(k),
				name: string(bytes.TrimRight(k.Proc.P_comm[:], "\x00")), zombie: k.Proc.P_stat == zombieState})
		}
	}
	return out
}

func (m matcher) belongs(k *unix.KinfoProc) bool {
	group := int(k.Eproc.Pgid)
	if leaderStart, named := m.sessions[group]; named {
		leader, err := unix.SysctlKinfoProc("kern.proc.pid", group)
		if leaderStart == 0 || (err == nil && startTime(leader) <= leaderStart) || (err != nil && startTime(k) >= leaderStart) {
			return true
		}
	}
	mark := markIn(int(k.Proc.P_pid))
	return mark != "" && m.marks(mark)
}

func signalMember(one member, m matcher, s syscall.Signal) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", one.pid)
	return err == nil && startTime(k) == one.start && m.belongs(k) && syscall.Kill(one.pid, s) == nil
}

func startTime(k *unix.KinfoProc) uint64 {
	return uint64(k.Proc.P_starttime.Sec)*1_000_000 + uint64(k.Proc.P_starttime.Usec)
}

// StartOf is the start time of a process, 0 where it cannot be read.
func StartOf(pid int) uint64 {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return startTime(k)
}

// markIn looks for the mark among a process's arguments and environment.
func markIn(pid int) string {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
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

// pipeNames: a pipe cannot be followed to its holders here.
func pipeNames([]*os.File) map[string]bool { return nil }

// identityOf names a child that is alive now.
func identityOf(pid int) Identity { return Identity{PID: pid, Start: StartOf(pid)} }
