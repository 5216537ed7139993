package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Names in the journal's directory: itself, and its successor until that is whole.
const (
	logName   = "log"
	draftName = "log.new"
)

const sumLen = 8

// encodeLine is the checksum, a space, the JSON, a newline.
func encodeLine(r record) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	line := make([]byte, 0, len(b)+sumLen+2)
	line = fmt.Appendf(line, "%08x ", crc32.ChecksumIEEE(b))
	return append(append(line, b...), '\n'), nil
}

func decodeLine(line []byte) (record, bool) {
	if len(line) < sumLen+1 || line[sumLen] != ' ' {
		return record{}, false
	}
	sum, err := strconv.ParseUint(string(line[:sumLen]), 16, 32)
	body := line[sumLen+1:]
	if err != nil || uint32(sum) != crc32.ChecksumIEEE(body) {
		return record{}, false
	}
	r, err := decodeRecord(body)
	return r, err == nil
}

// load reads the file. A torn last line is what a killed writer leaves: it is cut off. Any
// other line that cannot be read means damage: sound is false, the rest is still used.
func (j *journal) load() (sound bool, err error) {
	raw, err := io.ReadAll(j.file)
	if err != nil {
		return false, err
	}
	sound = true
	for at := 0; at < len(raw); {
		n := bytes.IndexByte(raw[at:], '\n')
		if n < 0 {
			break
		}
		r, ok := decodeLine(raw[at : at+n])
		at += n + 1
		switch {
		case ok:
			j.apply(r)
		case at < len(raw):
			sound = false
		default:
			// The last line has its end but not its middle: a power cut.
			at -= n + 1
			j.size = int64(at)
			return sound, j.file.Truncate(j.size)
		}
		j.size = int64(at)
	}
	if j.size < int64(len(raw)) {
		err = j.file.Truncate(j.size)
	}
	return sound, err
}

// lockLog opens and locks the journal's file.
func lockLog(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockAs(f, f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// lockAs locks an open file that has a name. One that a shortening by its owner took out of
// its place since it was opened is the journal no more, although its lock is free.
func lockAs(f *os.File, path string) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errJournalBusy
	}
	if err != nil {
		return err
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(mine, there) {
		return errJournalBusy
	}
	return nil
}

func identify(f *os.File) (device, inode uint64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, 0, err
	}
	return uint64(st.Dev), st.Ino, nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
