package eventlog

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"webcodex/internal/fault"
)

// The block ledger is a text file in the data directory, one line for each block file that
// JetStream has rolled away from: number, size in bytes, first and last sequence, SHA-256,
// and a check of the line itself. It is appended to and synced; a torn last line is a stop in
// mid-write and is cut away. Blocks that were pruned leave it.
const (
	ledgerName  = "ledger"
	ledgerAside = "ledger.damaged" // one that could not be read, after it was made again
	ledgerHead  = "webcodex block ledger 1\n"
)

// sealed is a line of the ledger: a block file that is durable and changes no more.
type sealed struct {
	block       int
	size        int64
	first, last uint64
	sum         string // hex
}

func (s sealed) text() string {
	return fmt.Sprintf("%d %d %d %d %s", s.block, s.size, s.first, s.last, s.sum)
}

func (s sealed) line() string {
	text := s.text()
	return text + " " + lineCheck(text) + "\n"
}

// lineCheck is the first 64 bits of the line's SHA-256.
func lineCheck(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func parseSealed(line string) (sealed, bool) {
	text, check, ok := cutLast(line, " ")
	if !ok || check != lineCheck(text) {
		return sealed{}, false
	}
	var s sealed
	n, err := fmt.Sscanf(text, "%d %d %d %d %64s", &s.block, &s.size, &s.first, &s.last, &s.sum)
	return s, err == nil && n == 5 && s.text() == text && s.block > 0 && s.size > 0 && s.first <= s.last
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

var errLedger = errors.New("not a block ledger")

// parseLedger reads a ledger file; torn tells that its last line was being written. A block
// named twice with different facts is damage, and so is any other line that is none.
func parseLedger(b []byte) (blocks map[int]sealed, torn bool, err error) {
	blocks = map[int]sealed{}
	rest, ok := bytes.CutPrefix(b, []byte(ledgerHead))
	if !ok {
		return blocks, false, errLedger
	}
	for len(rest) > 0 {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return blocks, true, nil
		}
		s, ok := parseSealed(string(line))
		if had, twice := blocks[s.block]; !ok || twice && had != s {
			return blocks, false, errLedger
		}
		blocks[s.block], rest = s, after
	}
	return blocks, false, nil
}

// readLedger gives what the file holds and a reason: empty, damageNoLedger or damageLedger.
func (d *dir) readLedger() (blocks map[int]sealed, torn bool, reason string, err error) {
	f, err := os.Open(d.file(ledgerName))
	if errors.Is(err, fs.ErrNotExist) {
		return map[int]sealed{}, false, damageNoLedger, nil
	}
	if err != nil {
		return nil, false, "", fault.Wrap(err, fault.Unavailable, "the log's block ledger cannot be read")
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxLedger))
	if err != nil {
		return nil, false, "", fault.Wrap(err, fault.Unavailable, "the log's block ledger cannot be read")
	}
	blocks, torn, err = parseLedger(b)
	if err != nil {
		return map[int]sealed{}, false, damageLedger, nil
	}
	return blocks, torn, "", nil
}

// writeLedger replaces the file.
func (d *dir) writeLedger(blocks map[int]sealed) error {
	var b strings.Builder
	b.WriteString(ledgerHead)
	for _, s := range slices.SortedFunc(maps.Values(blocks), func(a, b sealed) int { return cmp.Compare(a.block, b.block) }) {
		b.WriteString(s.line())
	}
	return d.writeBytes(ledgerName, []byte(b.String()))
}

// appendLedger adds one durable line to a file that exists.
func (d *dir) appendLedger(s sealed) error {
	f, err := os.OpenFile(d.file(ledgerName), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(s.line())
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// fileSum is a file's size in bytes and SHA-256.
type fileSum struct {
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

// sumFile hashes a file as it is read from the disk or its cache.
func sumFile(path string) (fileSum, error) { return sumReader(path, nil) }

// readThrough slows a reader down; nil: as it is.
type readThrough func(io.Reader) io.Reader

func sumReader(path string, through readThrough) (fileSum, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileSum{}, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	// A plain reader: the file's own WriteTo would use a small buffer.
	r := io.Reader(struct{ io.Reader }{f})
	if through != nil {
		r = through(r)
	}
	n, err := io.CopyBuffer(h, r, make([]byte, hashChunk))
	if err != nil {
		return fileSum{}, err
	}
	return fileSum{Size: n, Sum: hex.EncodeToString(h.Sum(nil))}, nil
}
