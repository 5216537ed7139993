package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/minio/highwayhash"

	"webcodex/internal/fault"
)

// JetStream's block file is a row of records, each
//
//	length(4) sequence(8) time(8) subject length(2) subject [header length(4) header] body checksum(8)
//
// in little-endian. The checksum covers what follows the length, but for the two inner
// lengths. A set high bit of the length means that there is a header.
const (
	blockSuffix  = ".blk"
	recordHead   = 22
	recordSum    = 8
	recordHeader = uint32(1) << 31
	seqErased    = uint64(1) << 63
	seqTombstone = uint64(1) << 62
)

var headerBegin, headerEnd = []byte("NATS/1.0\r\n"), []byte("\r\n\r\n")

// blockRecord is one record of a block file. Its bytes lie in the block's buffer.
type blockRecord struct {
	seq     uint64
	subject []byte
	body    []byte          // without headers
	offset  int             // of the record in the file
	size    int             // of the whole record
	sum     [recordSum]byte // what its checksum should be
	intact  bool            // its checksum holds
	gone    bool            // a tombstone or an erased message: no commit
}

// blockScan walks the records of one block file. It reads what others wrote, so it never
// trusts a length.
type blockScan struct {
	buf  []byte
	off  int // where the next record begins, or where what follows is none
	hash *highwayhash.Digest64
}

// newBlockScan begins at the first record of block index; its checksums depend on the index.
func newBlockScan(index int, buf []byte) *blockScan {
	key := sha256.Sum256([]byte(streamName + "-" + strconv.Itoa(index)))
	h, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		panic("a 32 byte key is refused: " + err.Error())
	}
	return &blockScan{buf: buf, hash: h}
}

// next gives the record at off. False means that none begins there: off is the length of the
// block if it is whole, and else where it stops being readable. A record whose checksum does
// not hold is given with intact false.
func (s *blockScan) next() (blockRecord, bool) {
	b := s.buf[s.off:]
	if len(b) < recordHead {
		return blockRecord{}, false
	}
	length, subjectLen := binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint16(b[20:]))
	size := int(length &^ recordHeader)
	at := recordHead + subjectLen
	payload := at
	if length&recordHeader != 0 {
		payload += 4
	}
	if size > len(b) || size > maxRecord || payload+recordSum > size {
		return blockRecord{}, false
	}
	r := blockRecord{seq: binary.LittleEndian.Uint64(b[4:]), subject: b[recordHead:at], offset: s.off, size: size}
	body := b[payload : size-recordSum]
	s.hash.Reset()
	_, _ = s.hash.Write(b[4:20])
	_, _ = s.hash.Write(r.subject)
	_, _ = s.hash.Write(body)
	var sum [recordSum]byte
	r.sum = [recordSum]byte(s.hash.Sum(sum[:0]))
	r.intact = bytes.Equal(r.sum[:], b[size-recordSum:size])
	if payload > at {
		// The header's length is not under the checksum, so its form is looked at.
		n := binary.LittleEndian.Uint32(b[at:])
		if uint64(n) > uint64(len(body)) || !bytes.HasPrefix(body, headerBegin) || !bytes.HasSuffix(body[:n], headerEnd) {
			r.intact, n = false, 0
		}
		body = body[n:]
	}
	r.body = body
	r.gone = r.seq == 0 || r.seq&(seqErased|seqTombstone) != 0
	r.seq &^= seqErased | seqTombstone
	s.off += size
	return r, true
}

// errNoRecord tells that a block holds no commit.
var errNoRecord = errors.New("the block holds no commit")

// firstSeq is the sequence of the first commit in a block file. Errors: errNoRecord for a
// block without one, fault log_damaged where what comes first cannot be read.
func firstSeq(dir string, index int) (uint64, error) {
	f, err := os.Open(filepath.Join(dir, strconv.Itoa(index)+blockSuffix))
	if err != nil {
		return 0, fmt.Errorf("open a block: %w", err)
	}
	defer func() { _ = f.Close() }()
	// The first record says it nearly always; a block can be 8 MiB.
	var buf []byte
	for _, more := range []int64{maxRecord, maxBlock} {
		b, err := io.ReadAll(io.LimitReader(f, more))
		if err != nil {
			return 0, fmt.Errorf("read a block: %w", err)
		}
		buf = append(buf, b...)
		seq, err := firstCommit(index, buf)
		if err == nil || len(b) < int(more) || more == maxBlock {
			return seq, err
		}
	}
	return 0, errNoRecord
}

func firstCommit(index int, buf []byte) (uint64, error) {
	s := newBlockScan(index, buf)
	for {
		r, ok := s.next()
		switch {
		case ok && !r.intact, !ok && s.off < len(buf):
			return 0, fault.New(fault.LogDamaged, "block %d of the log cannot be read at its byte %d", index, s.off).WithReason(damageFlipped)
		case !ok:
			return 0, errNoRecord
		case !r.gone:
			return r.seq, nil
		}
	}
}
