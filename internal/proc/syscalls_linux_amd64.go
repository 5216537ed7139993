package proc

import "golang.org/x/sys/unix"

// waitingCalls are the system calls in which a thread waits for a file, by what their arguments
// name.
var waitingCalls = map[int64]func(thread, [6]uint64) ([]int, bool){
	unix.SYS_READ: readsFile, unix.SYS_READV: readsFile,
	unix.SYS_POLL: pollsFiles, unix.SYS_PPOLL: pollsFiles,
	unix.SYS_SELECT: selectsFiles, unix.SYS_PSELECT6: selectsFiles,
	unix.SYS_EPOLL_WAIT: epollsFiles, unix.SYS_EPOLL_PWAIT: epollsFiles, unix.SYS_EPOLL_PWAIT2: epollsFiles,
	unix.SYS_IO_URING_ENTER: cannotTell, unix.SYS_RESTART_SYSCALL: restarted,
}
