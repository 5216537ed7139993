package sandbox

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in what the kernel gives a filter.
const (
	atCall = 0
	atArch = 4
)

// filter is a program that refuses what Landlock does not look at: sockets of any kind, and
// changes of a file's mode, owner, times and attributes. Rings of requests would pass it by, so
// there are none. It is empty where the numbers of this architecture are not written down.
func filter(landlock int) []unix.SockFilter {
	if len(refusedCalls) == 0 {
		return nil
	}
	refused := refusedCalls
	if landlock < 3 {
		refused = append(refused[:len(refused):len(refused)], unix.SYS_TRUNCATE)
	}
	refuse := func(errno unix.Errno) unix.SockFilter { return ret(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
	out := []unix.SockFilter{
		load(atArch), jump(unix.BPF_JEQ, auditArch, 1, 0), refuse(unix.ENOSYS), // a program of another kind of machine
		load(atCall), jump(unix.BPF_JGE, otherCalls, 0, 1), refuse(unix.ENOSYS),
		jump(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, 0, 1), refuse(unix.ENOSYS),
	}
	for _, call := range refused {
		out = append(out, jump(unix.BPF_JEQ, call, 0, 1), refuse(unix.EPERM))
	}
	return append(out, ret(unix.SECCOMP_RET_ALLOW))
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func jump(how uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | how, K: k, Jt: yes, Jf: no}
}

func ret(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

// install puts the calling thread under a filter.
func install(program []unix.SockFilter) error {
	if len(program) == 0 {
		return errors.ErrUnsupported
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0)
}
