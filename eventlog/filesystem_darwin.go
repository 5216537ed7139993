package eventlog

import "golang.org/x/sys/unix"

// FileSystem names the kind of file system a path lies on, "unknown" where it cannot be told.
func FileSystem(path string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(fs.Fstypename[:])
}
