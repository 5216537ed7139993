package files

import (
	"os"
	"strconv"
)

// openedDir is a name under which a child changes to the opened directory itself, whatever
// its path leads to by then.
func openedDir(dir *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) }
