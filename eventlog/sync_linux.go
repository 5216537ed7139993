package eventlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync makes a file's data durable, with the size that reading it back needs.
func fdatasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// dropCached lets go of a file's clean pages. It is advice: what cannot be dropped stays.
func dropCached(path string) {
	if f, err := os.Open(path); err == nil {
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		_ = f.Close()
	}
}
