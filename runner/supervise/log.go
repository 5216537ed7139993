package supervise

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Log keeps the end of a stream in files named by the offset of their first byte. What is kept is
// always contiguous and its place in the stream exact, whoever is killed when.
type Log struct {
	dir, name string

	mu    sync.Mutex
	file  *os.File
	room  int
	total int64
	kept  []int64 // first offsets, oldest first
}

// NewLog begins a stream.
func NewLog(dir, name string) *Log { return &Log{dir: dir, name: name} }

// Write never fails: what the disk does not take is counted and lost, with all that came before.
func (l *Log) Write(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(p) > 0 {
		if l.file == nil && !l.open() {
			l.total += int64(len(p))
			return
		}
		part := p[:min(len(p), l.room)]
		n, err := l.file.Write(part)
		l.total, l.room, p = l.total+int64(n), l.room-n, p[n:]
		if err != nil {
			// A gap: what follows it begins anew.
			l.total += int64(len(part) - n)
			p = p[len(part)-n:]
			l.shut()
			l.drop(len(l.kept))
			continue
		}
		if l.room == 0 {
			l.shut()
		}
	}
}

func (l *Log) open() bool {
	f, err := os.OpenFile(segment(l.dir, l.name, l.total), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		l.drop(len(l.kept))
		return false
	}
	l.file, l.room, l.kept = f, segmentBytes, append(l.kept, l.total)
	l.drop(len(l.kept) - keptSegments)
	return true
}

func (l *Log) shut() {
	_ = l.file.Close()
	l.file = nil
}

// drop lets the oldest n segments go.
func (l *Log) drop(n int) {
	for range max(n, 0) {
		_ = os.Remove(segment(l.dir, l.name, l.kept[0]))
		l.kept = l.kept[1:]
	}
}

// Total is the number of bytes ever written.
func (l *Log) Total() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// Close makes what is kept durable, as far as the disk does.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Sync()
		l.shut()
	}
}

func segment(dir, name string, at int64) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%016x", name, at))
}

// Reader reads a stream's log while it is written, or afterwards.
type Reader struct{ dir, name string }

// Segments are the first offsets of what is kept, oldest first, and the offset after the newest.
func (r Reader) segments() (at []int64, end int64, err error) {
	names, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, d := range names {
		if digits, ok := strings.CutPrefix(d.Name(), r.name+"."); ok && len(digits) == 16 {
			if n, err := strconv.ParseInt(digits, 16, 64); err == nil {
				at = append(at, n)
			}
		}
	}
	slices.Sort(at)
	if len(at) == 0 {
		return nil, 0, nil
	}
	last := at[len(at)-1]
	info, err := os.Stat(segment(r.dir, r.name, last))
	if errors.Is(err, fs.ErrNotExist) {
		return r.segments() // it was replaced meanwhile
	}
	if err != nil {
		return nil, 0, err
	}
	return at, last + info.Size(), nil
}

// Kept are the offsets of the oldest byte that is kept and after the newest.
func (r Reader) Kept() (from, to int64, err error) {
	at, end, err := r.segments()
	if err != nil || len(at) == 0 {
		return 0, 0, err
	}
	return at[0], end, nil
}

// Read gives what is kept from an offset on, at most max bytes, and where that begins: later than
// asked for where the beginning has been dropped.
func (r Reader) Read(from int64, max int) (b []byte, at int64, err error) {
	starts, end, err := r.segments()
	if err != nil || len(starts) == 0 || from >= end {
		return nil, from, err
	}
	if from < starts[0] {
		from = starts[0]
	}
	i, found := slices.BinarySearch(starts, from)
	if !found {
		i--
	}
	f, err := os.Open(segment(r.dir, r.name, starts[i]))
	if errors.Is(err, fs.ErrNotExist) {
		return r.Read(from, max) // dropped meanwhile
	}
	if err != nil {
		return nil, from, err
	}
	defer f.Close()
	b = make([]byte, min(max, segmentBytes))
	n, err := f.ReadAt(b, from-starts[i])
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], from, err
}
