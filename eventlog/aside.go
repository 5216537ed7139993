package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"webcodex/internal/fault"
)

// A copy of the newest block waits under the second name until the log was accepted. Only
// then it takes the place of the one before: a start that is refused after JetStream has cut
// the file must not cost the only good copy, however often it is tried.
const (
	tailCopyName    = "log-tail-copy"
	pendingCopyName = "log-tail-copy.pending"
)

// setAside copies the newest block before JetStream cuts it, and moves away what lies behind
// a block that a power cut left unreadable: what JetStream would make of it is a log with a
// hole.
func (x *examination) setAside() error {
	keep := x.tail
	if x.cut > 0 {
		keep = x.cut
	}
	to := x.l.dir.file(pendingCopyName)
	err := os.MkdirAll(to, 0o700)
	if err == nil {
		err = copyInto(x.file(keep), to)
	}
	if err != nil {
		if x.cut > 0 {
			return fault.Wrap(err, fault.Unavailable, "the end of the log cannot be copied aside before it is cut").
				WithNext("free some disk space and start again")
		}
		x.l.log.Warn("log: its newest block could not be copied aside", slog.Any("error", err))
		return nil
	}
	for _, i := range x.index {
		if x.cut > 0 && i > x.cut {
			err := copyInto(x.file(i), to)
			if err == nil {
				err = os.Remove(x.file(i))
			}
			if err != nil {
				return fault.Wrap(err, fault.Unavailable, "the end of the log cannot be moved aside")
			}
		}
	}
	if x.cut > 0 {
		x.l.log.Warn("log: a power cut left its end unreadable; what lies behind was moved aside", slog.Int("block", x.cut))
	}
	if err := errors.Join(syncPath(x.dir), syncPath(x.l.dir.path)); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the log's directory cannot be made durable")
	}
	return nil
}

// acceptCopy is told that the log is good: the copy that waits is the newest there is.
func (d *dir) acceptCopy(log *slog.Logger) {
	from, to := d.file(pendingCopyName), d.file(tailCopyName)
	if _, err := os.Lstat(from); err != nil {
		return
	}
	err := os.RemoveAll(to)
	if err == nil {
		err = os.Rename(from, to)
	}
	if err != nil {
		log.Warn("log: the copy of its newest block stays where it was made", slog.Any("error", err))
	}
}

// copyInto copies a block into a directory under a name that is free there, durably; the same
// bytes are there once, and after maxCopies that differ no more are taken.
func copyInto(from, dir string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, filepath.Base(from))
	for n := 2; ; n++ {
		had, err := os.ReadFile(to)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil || bytes.Equal(had, b) {
			return err
		}
		if n > maxCopies {
			return fmt.Errorf("%d copies of block file %s wait already", maxCopies, filepath.Base(from))
		}
		to = filepath.Join(dir, fmt.Sprintf("%s.%d", filepath.Base(from), n))
	}
	tmp := filepath.Join(dir, "tmp")
	out, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, to)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return syncPath(dir)
}
