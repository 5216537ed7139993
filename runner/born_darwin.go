package runner

import "golang.org/x/sys/unix"

// bornAt identifies an opened directory.
func bornAt(fd int) (inode, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return inode{}, err
	}
	return inode{Device: uint64(st.Dev), Inode: st.Ino, Born: st.Btim.Nano()}, nil
}
