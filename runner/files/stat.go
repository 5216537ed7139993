package files

import (
	"os"
	"syscall"
)

// hardLinked reports whether a file has another name, which may lie outside the Project.
func hardLinked(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Nlink > 1
}
