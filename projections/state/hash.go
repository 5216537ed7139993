package state

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/minio/highwayhash"
)

// ErrRow tells that a row is not what was written: its hash differs.
var ErrRow = errors.New("a row of state.db is damaged")

// rowKey is fixed: a row's hash finds damage, it is no proof against somebody who writes the
// file. It is the checksum that the log's own store uses, ten times faster than SHA-256.
var rowKey = []byte("webcodex.state.row.v1\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")

// Hash is of one stored value of a row.
func Hash(value []byte) int64 { return int64(highwayhash.Sum64(value, rowKey)) }

// HashString is Hash of a text, which is not copied.
func HashString(value string) int64 {
	return Hash(unsafe.Slice(unsafe.StringData(value), len(value))) // only read
}

// Fields collects the columns of a row for its hash, so that none runs into the next.
type Fields struct{ b []byte }

// Text adds a text column.
func (f *Fields) Text(s string) *Fields {
	f.b = append(binary.AppendUvarint(f.b, uint64(len(s))), s...)
	return f
}

// Uint adds a number.
func (f *Fields) Uint(n uint64) *Fields {
	f.b = binary.BigEndian.AppendUint64(f.b, n)
	return f
}

// Hash is of all columns added.
func (f *Fields) Hash() int64 { return Hash(f.b) }
