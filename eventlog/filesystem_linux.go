package eventlog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// magics names file systems by what statfs says.
var magics = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.NFS_SUPER_MAGIC: "nfs",
	unix.SMB2_SUPER_MAGIC: "smb", unix.FUSE_SUPER_MAGIC: "fuse", unix.V9FS_MAGIC: "9p",
	unix.F2FS_SUPER_MAGIC: "f2fs", 0x2fc12fc1: "zfs",
}

// FileSystem names the kind of file system a path lies on, "unknown" where it cannot be told.
// ext2, ext3 and ext4 have one magic number, and a mount may leave out the flushes of the
// disk's cache, so the mount itself is asked where there is one.
func FileSystem(path string) string {
	var st unix.Stat_t
	if p, err := filepath.EvalSymlinks(path); err == nil {
		path = p
	}
	if err := unix.Stat(path, &st); err == nil {
		if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
			device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
			if kind, ok := mountedAs(string(mounts), device); ok {
				return kind
			}
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err == nil && magics[int64(fs.Type)] != "" {
		return magics[int64(fs.Type)]
	}
	return "unknown"
}

// mountedAs finds a device in the text of /proc/self/mountinfo.
func mountedAs(mounts, device string) (string, bool) {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 3 || fields[2] != device || len(rest) < 1 {
			continue
		}
		if len(rest) > 2 && unflushed(strings.Split(rest[2], ",")) {
			return rest[0] + " without barriers", true
		}
		return rest[0], true
	}
	return "", false
}

func unflushed(options []string) bool {
	return slices.Contains(options, "nobarrier") || slices.Contains(options, "barrier=0")
}
