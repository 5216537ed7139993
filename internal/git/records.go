package git

import (
	"bufio"
	"errors"
	"io"

	"webcodex/internal/fault"
)

// maxRecord bounds one NUL-ended record; a path is at most 4 KiB.
const maxRecord = 64 << 10

// records reads NUL-ended records one by one; each call's bytes are valid only during it. A
// record above the bound, or one that is cut off, is an error.
func records(each func([]byte) error) func(io.Reader) error { return recordReader(each, false) }

// cutRecords is records for free text: what is above the bound is left out.
func cutRecords(each func([]byte) error) func(io.Reader) error { return recordReader(each, true) }

func recordReader(each func([]byte) error, cut bool) func(io.Reader) error {
	return func(in io.Reader) error {
		br := bufio.NewReaderSize(in, 32<<10)
		rec := make([]byte, 0, 512)
		for {
			part, err := br.ReadSlice(0)
			ended := err == nil
			if ended {
				part = part[:len(part)-1]
			}
			room := maxRecord - len(rec)
			if len(part) > room && !cut {
				return fault.New(fault.GitFailed, "git's answer could not be read: an entry is too long")
			}
			rec = append(rec, part[:min(room, len(part))]...)
			switch {
			case ended:
				if err := each(rec); err != nil {
					return err
				}
				rec = rec[:0]
			case errors.Is(err, bufio.ErrBufferFull):
			case errors.Is(err, io.EOF) && len(rec) == 0:
				return nil
			case errors.Is(err, io.EOF):
				return fault.New(fault.GitFailed, "git's answer ended in the middle of an entry")
			default:
				return err
			}
		}
	}
}
