package main

import "golang.org/x/sys/unix"

// fileSystems names what a data directory is likely to lie on (statfs magic numbers).
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.NFS_SUPER_MAGIC: "nfs",
	unix.SMB2_SUPER_MAGIC: "smb", unix.FUSE_SUPER_MAGIC: "fuse", unix.V9FS_MAGIC: "9p",
	unix.F2FS_SUPER_MAGIC: "f2fs", 0x2fc12fc1: "zfs",
}

// fileSystem names the file system of a path and gives its free and total bytes.
func fileSystem(path string) (name string, free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", 0, 0, err
	}
	name = fileSystems[int64(st.Type)]
	if name == "" {
		name = "unknown"
	}
	return name, st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}
