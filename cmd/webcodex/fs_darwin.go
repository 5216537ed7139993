package main

import "golang.org/x/sys/unix"

// fileSystem names the file system of a path and gives its free and total bytes.
func fileSystem(path string) (name string, free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", 0, 0, err
	}
	return unix.ByteSliceToString(st.Fstypename[:]), st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}
