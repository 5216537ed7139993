package git

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"webcodex/internal/fault"
)

// maxRecord bounds one NUL-ended record; a path is at most 4 KiB.
const maxRecord = 64 << 10

// records reads NUL-ended records one by one; each call's bytes are valid only during it.
func records(each func([]byte) error) func(io.Reader) error {
	return func(in io.Reader) error {
		sc := bufio.NewScanner(in)
		sc.Buffer(make([]byte, 8<<10), maxRecord)
		sc.Split(func(data []byte, atEOF bool) (int, []byte, error) {
			if i := bytes.IndexByte(data, 0); i >= 0 {
				return i + 1, data[:i], nil
			}
			if atEOF && len(data) > 0 {
				return 0, nil, io.ErrUnexpectedEOF
			}
			return 0, nil, nil
		})
		for sc.Scan() {
			if err := each(sc.Bytes()); err != nil {
				return err
			}
		}
		err := sc.Err()
		if errors.Is(err, bufio.ErrTooLong) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fault.Wrap(err, fault.GitFailed, "git's answer could not be read")
		}
		return err
	}
}
