package runner

import "golang.org/x/sys/unix"

// bornAt identifies an opened directory.
func bornAt(fd int) (inode, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return inode{}, err
	}
	at := inode{Device: uint64(st.Dev), Inode: st.Ino}
	var x unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &x) == nil && x.Mask&unix.STATX_BTIME != 0 {
		at.Born = x.Btime.Sec*1_000_000_000 + int64(x.Btime.Nsec)
	}
	return at, nil
}
