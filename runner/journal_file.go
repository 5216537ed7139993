package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

const (
	// compactBytes is the size at which the next life shortens the journal.
	compactBytes = 16 << 20
	// keptBytes of the newest entries survive that, and all that are still open.
	keptBytes = 4 << 20
	sumLen    = 8
)

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

// compact rewrites the journal with what is open and the newest of the rest.
func (j *journal) compact(dir string) error {
	tmp := filepath.Join(dir, "log.new")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	next := &journal{file: f, now: j.now, entries: map[event.ExecutionID]*entry{}}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = j.copyTo(next)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(tmp, filepath.Join(dir, "log"))
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	_ = j.file.Close()
	j.file, j.size, j.entries, j.order = f, next.size, next.entries, next.order
	return nil
}

func (j *journal) copyTo(next *journal) error {
	keep := j.kept()
	var now life
	for _, id := range j.order {
		if !keep[id] {
			continue
		}
		e := j.entries[id]
		if e.life != now {
			now = e.life
			l := now
			if err := next.append(record{Life: &l}); err != nil {
				return err
			}
		}
		if err := next.append(j.record(id)); err != nil {
			return err
		}
	}
	return nil
}

// kept picks what is open and the newest of the rest, keptBytes of it.
func (j *journal) kept() map[event.ExecutionID]bool {
	keep, size := map[event.ExecutionID]bool{}, 0
	for _, id := range slices.Backward(j.order) {
		line, err := encodeLine(j.record(id))
		if size += len(line); err == nil && (size <= keptBytes || !final(j.entries[id].state)) {
			keep[id] = true
		}
	}
	return keep
}

// record is all that is known of an id in one line.
func (j *journal) record(id event.ExecutionID) record {
	e := j.entries[id]
	return record{ID: id, State: e.state, Digest: e.digest, Instance: e.instance, Leader: e.leader, Result: e.result}
}

// final reports that nothing is owed for an id any more.
func final(s wire.JournalState) bool {
	switch s {
	case wire.JAccepted, wire.JStarting, wire.JRunning, wire.JTerminal:
		return false
	}
	return true
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
