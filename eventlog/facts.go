package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"webcodex/eventlog/event"
)

// blockFacts is what the records of one block file tell, without JetStream.
type blockFacts struct {
	first, last uint64 // of the commits before the first bad byte; 0: none
	size, end   int    // bytes of the file, and of what can be read from its begin
	// later tells that a whole record lies behind the first bad byte, whole that only the
	// length of the last one is wrong: neither is what a stop in mid-write leaves.
	later, whole bool
	// torn tells that what cannot be read looks like a write that was cut short.
	torn bool
	hash string // of the commit at the sequence that was asked for
}

func (f blockFacts) bad() bool { return f.end < f.size }

// readFacts walks a block file; seq is a commit whose hash is wanted, 0: none.
func readFacts(path string, index int, seq uint64) (blockFacts, error) {
	f, err := os.Open(path)
	if err != nil {
		return blockFacts{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return blockFacts{}, err
	}
	if info.Size() > maxBlock {
		return blockFacts{}, fmt.Errorf("block %d has %d bytes", index, info.Size())
	}
	buf := make([]byte, info.Size())
	if _, err := io.ReadFull(f, buf); err != nil {
		return blockFacts{}, err
	}
	return factsOf(index, buf, seq), nil
}

func factsOf(index int, buf []byte, seq uint64) blockFacts {
	f := blockFacts{size: len(buf)}
	s := newBlockScan(index, buf)
	for {
		r, ok := s.next()
		if !ok {
			break
		}
		if !r.intact || !r.gone && f.last > 0 && r.seq <= f.last {
			s.off = r.offset
			break
		}
		f.end = r.offset + r.size
		if r.gone {
			continue
		}
		if f.first == 0 {
			f.first = r.seq
		}
		if f.last = r.seq; r.seq == seq {
			f.hash = event.Hash(r.body)
		}
	}
	if f.bad() {
		f.judge(index, buf)
	}
	return f
}

// judge looks at what lies behind the first bad byte.
func (f *blockFacts) judge(index int, buf []byte) {
	rest := buf[f.end:]
	f.later = laterRecord(index, buf, f.end, f.last)
	f.whole = wholeButForLength(index, rest)
	zero := len(bytes.TrimRight(rest, "\x00")) == 0
	if !zero && len(rest) >= recordHead {
		size := int(binary.LittleEndian.Uint32(rest) &^ recordHeader)
		f.torn = size > len(rest) && size <= maxRecord && !f.whole || tornInside(index, rest, size)
		return
	}
	f.torn = true
}

// tornInside tells that a record has its length but ends in zeros up to the end of the file,
// as where a file system kept the size and lost the data. Zeros that begin inside the checksum
// count only where all that lies before them is as it was written.
func tornInside(index int, rest []byte, size int) bool {
	if size < recordHead+recordSum || size > len(rest) || len(bytes.TrimRight(rest[size:], "\x00")) > 0 {
		return false
	}
	stored := rest[size-recordSum : size]
	written := bytes.TrimRight(stored, "\x00")
	if len(written) == 0 {
		return true
	}
	r, ok := newBlockScan(index, rest).next()
	return ok && !bytes.Equal(stored, r.sum[:]) && bytes.HasPrefix(r.sum[:], written)
}

// laterRecord looks for a whole record behind a bad one. Every subject has the same begin.
func laterRecord(index int, buf []byte, from int, after uint64) bool {
	for at := from + 1; ; at++ {
		i := bytes.Index(buf[at:], subjectBegin)
		if i < 0 {
			return false
		}
		at += i
		if at-recordHead <= from {
			continue
		}
		s := newBlockScan(index, buf)
		s.off = at - recordHead
		if r, ok := s.next(); ok && r.intact && r.seq > after {
			return true
		}
	}
}

var subjectBegin = []byte(subjectPrefix)

// wholeButForLength tells that the bytes are one record whose length field alone is wrong.
func wholeButForLength(index int, rest []byte) bool {
	if len(rest) < recordHead+recordSum || len(rest) > maxRecord {
		return false
	}
	for _, flag := range []uint32{recordHeader, 0} {
		b := bytes.Clone(rest)
		binary.LittleEndian.PutUint32(b, uint32(len(b))|flag)
		if r, ok := newBlockScan(index, b).next(); ok && r.intact {
			return true
		}
	}
	return false
}
