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
