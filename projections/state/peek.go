package state

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"time"

	"webcodex/eventlog"
)

// ErrUnknown tells that there is a file whose checkpoint cannot be read.
var ErrUnknown = errors.New("which commit the read models stood at cannot be read")

// Peek reads which commit the file at path stands at, of whatever version it is, for whoever
// holds the lock of the data directory; zero: there is no file, or nothing in it. The row's own
// hash decides: it is believed also where the rest of the file is damaged, is marked as spoiled
// or cut off. The file and its write-ahead log stay as they are: it proves how far the log
// went, and the log may be what is damaged. Errors: ErrUnknown.
func Peek(ctx context.Context, path string) (eventlog.BaseCheckpoint, error) {
	none := eventlog.BaseCheckpoint{}
	wal, noWAL := os.Stat(path + "-wal")
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Size() == 0:
		if noWAL == nil && wal.Size() > 0 { // of a file that is gone; SQLite would remove it unread
			return none, ErrUnknown
		}
		return none, nil
	case err != nil:
		return none, ErrUnknown
	}
	u := url.URL{Scheme: "file", Opaque: url.PathEscape(path)}
	dsn := u.String() + "?mode=ro&_pragma=writable_schema(1)" // or a file that is cut off is refused whole
	if noWAL != nil || wal.Size() == 0 {
		dsn += "&immutable=1" // no file is made beside it
	} else if _, err := os.Lstat(path + "-shm"); errors.Is(err, fs.ErrNotExist) {
		defer func() { _ = os.Remove(path + "-shm") }() // an index of the write-ahead log
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return none, ErrUnknown
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	f := file{path: path, reader: db}
	c, _, err := f.checkpoint(ctx)
	if err != nil {
		return none, ErrUnknown
	}
	return c, nil
}

// peekTimeout bounds Peek: without an answer nothing is proved.
const peekTimeout = 5 * time.Second
