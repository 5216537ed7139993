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

// Peek reads which commit the file at path stands at, of whatever version it is, for whoever
// holds the lock of the data directory; false: it tells nothing. The file and its write-ahead
// log stay as they are: it proves how far the log went, and the log may be what is damaged.
func Peek(ctx context.Context, path string) (eventlog.BaseCheckpoint, bool) {
	f := file{path: path}
	if why, _, err := f.look(); err != nil || why != "" {
		return eventlog.BaseCheckpoint{}, false
	}
	u := url.URL{Scheme: "file", Opaque: url.PathEscape(path)}
	dsn := u.String() + "?mode=ro"
	if wal, err := os.Stat(path + "-wal"); err != nil || wal.Size() == 0 {
		dsn += "&immutable=1" // no file is made beside it
	} else if _, err := os.Lstat(path + "-shm"); errors.Is(err, fs.ErrNotExist) {
		defer func() { _ = os.Remove(path + "-shm") }() // an index of the write-ahead log
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return eventlog.BaseCheckpoint{}, false
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	f.reader = db
	c, _, err := f.checkpoint(ctx)
	return c, err == nil && c.Seq > 0
}

// peekTimeout bounds Peek: without an answer nothing is proved.
const peekTimeout = 5 * time.Second
