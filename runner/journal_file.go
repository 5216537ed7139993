package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

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

// contents is what a journal's file says.
type contents struct {
	records []record
	end     int64 // of what could be read
	// sound is false where the file holds what no stop of a writer leaves: absence proves
	// nothing then, and a step may be missing behind any other.
	sound bool
}

// parseJournal reads a file of which the present boot id is known.
func parseJournal(raw []byte, boot string) contents {
	c := contents{sound: true}
	lastBoot := ""
	for at := 0; at < len(raw); {
		rest := raw[at:]
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			c.sound = c.sound && torn(rest, c.end > 0)
			break
		}
		r, ok := decodeLine(rest[:n])
		last := at+n+1 == len(raw)
		switch {
		case ok:
			c.records = append(c.records, r)
			if r.Life != nil {
				lastBoot = r.Life.Boot
			}
		case last && c.sound && lastBoot != boot && bytes.IndexByte(rest[:n], 0) >= 0:
			return c // a power cut kept the line's end and lost its middle
		default:
			c.sound = false
		}
		at += n + 1
		if ok {
			c.end = int64(at)
		}
	}
	return c
}

// torn tells whether an end without its newline is what a killed writer or a power cut leaves:
// the begin of a line, or zeros. Behind whole lines it may be anything but a line in which only
// the newline is wrong.
func torn(rest []byte, behind bool) bool {
	if len(rest) > maxLine {
		return false
	}
	if _, ok := decodeLine(rest[:len(rest)-1]); ok {
		return false
	}
	if behind || len(bytes.Trim(rest, "\x00")) == 0 {
		return true
	}
	const begin = "00000000 {"
	for i, c := range rest[:min(len(rest), len(begin))] {
		if hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'; begin[i] == '0' && !hex || begin[i] != '0' && c != begin[i] {
			return false
		}
	}
	return true
}

// load reads the file and cuts a torn end off. A file that is not sound is left as it is.
func (j *journal) load(boot string) (sound bool, err error) {
	raw, err := io.ReadAll(j.file)
	if err != nil {
		return false, err
	}
	c := parseJournal(raw, boot)
	for _, r := range c.records {
		j.apply(r)
	}
	if j.size = c.end; c.sound && j.size < int64(len(raw)) {
		err = j.file.Truncate(j.size)
	}
	return c.sound, err
}

// setAside gives the file a second name, under which it stays when a sound one takes its place.
func (j *journal) setAside() error {
	mine, err := j.file.Stat()
	if err != nil {
		return err
	}
	for n := 1; n <= maxAside; n++ {
		name := asideName(n)
		err := os.Link(filepath.Join(j.dir, logName), filepath.Join(j.dir, name))
		if errors.Is(err, fs.ErrExist) {
			if there, serr := os.Stat(filepath.Join(j.dir, name)); serr != nil || !os.SameFile(mine, there) {
				continue
			}
			err = nil // a start that got no further
		}
		if err != nil {
			return err
		}
		j.aside = name
		return syncDir(j.dir)
	}
	return errAside
}

func asideName(n int) string { return logName + ".damaged." + strconv.Itoa(n) }

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
	for begun := time.Now(); errors.Is(err, unix.EWOULDBLOCK); err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) {
		// What a killed Runner was about to start has its files for a moment longer.
		if time.Since(begun) > lockWait {
			return errJournalBusy
		}
		time.Sleep(lockWait / 20)
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
