package git

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB

// waitExit polls until pid has ended, without collecting it: waitid is not to be trusted here.
func waitExit(pid int) {
	for wait := time.Millisecond; ; wait = min(wait*2, 20*time.Millisecond) {
		k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil || k.Proc.P_stat == zombie {
			return
		}
		time.Sleep(wait)
	}
}

// childDir is the directory's path: an opened directory has no name to change to here.
func childDir(dir *os.File) string { return dir.Name() }

// realPath is where the opened directory lies now.
func realPath(dir *os.File) (string, error) { return filepath.EvalSymlinks(dir.Name()) }
