package git

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// waitExit blocks until pid has ended, without collecting it, so that its id stays taken.
func waitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// childDir is a name under which a child changes to the opened directory itself, whatever
// its path leads to by then.
func childDir(dir *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) }

// realPath is where the opened directory lies now.
func realPath(dir *os.File) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())))
}
