package state

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"webcodex/eventlog"
	"webcodex/internal/fault"
)

// Reasons why the file is made again at its opening.
const (
	whyNone      = "there is none"
	whyNotSQLite = "it is no database"
	whyTruncated = "it is truncated"
	whyFold      = "it is of another version"
	whySpoiled   = "it was found damaged"
)

// file is state.db. One connection writes, a few read.
type file struct {
	path   string
	fold   string
	schema []string

	mu     sync.RWMutex // guards the handles, which Reset replaces
	writer *sql.DB
	reader *sql.DB
	head   *sql.Stmt
	living *sql.Stmt
	lean   bool // the writer has the cache of a server that serves
}

// open gives a file that fits, and says why it is a new one. What was damaged is moved aside.
func (f *file) open(ctx context.Context) (why string, err error) {
	why, damaged, err := f.look()
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "the read models' file cannot be opened")
	}
	if why == "" {
		var fits bool
		if fits, err = f.connect(ctx); err == nil && fits {
			return "", nil
		}
		if ctx.Err() != nil {
			return "", errors.Join(ctx.Err(), f.close())
		}
		why, damaged = whyFold, false
		if err != nil {
			why, damaged = reasonOf(err), true
		}
	}
	if damaged {
		if err := f.close(); err != nil {
			return "", err
		}
		if err := os.Rename(f.path, f.path+".damaged"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fault.Wrap(err, fault.Unavailable, "the read models' damaged file cannot be moved aside")
		}
	}
	return why, f.again(ctx)
}

// look judges the file before SQLite does.
func (f *file) look() (why string, damaged bool, err error) {
	if _, err := os.Stat(f.spoiled()); err == nil {
		return whySpoiled, true, nil
	}
	h, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return whyNone, false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer h.Close()
	var head [100]byte
	if _, err := io.ReadFull(h, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return whyNone, false, nil
		}
		return whyNotSQLite, true, nil
	}
	if string(head[:16]) != "SQLite format 3\x00" {
		return whyNotSQLite, true, nil
	}
	info, err := h.Stat()
	if err != nil {
		return "", false, err
	}
	// With a write-ahead log the pages may still be there.
	wal, werr := os.Stat(f.path + "-wal")
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 64 << 10
	}
	if (werr != nil || wal.Size() == 0) && info.Size() < page*int64(binary.BigEndian.Uint32(head[28:])) {
		return whyTruncated, true, nil
	}
	return "", false, nil
}

// pragmas: the file is consistent after a power cut in WAL mode with synchronous normal; what
// a cut takes from its end the log still has.
func (f *file) dsn(extra string) string {
	u := url.URL{Scheme: "file", Opaque: url.PathEscape(f.path)}
	return u.String() + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)" +
		"&_pragma=journal_size_limit(67108864)&_pragma=temp_store(memory)" + extra
}

// connect opens the handles and compares the fold version.
func (f *file) connect(ctx context.Context) (fits bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writer, err = sql.Open("sqlite", f.dsn(fmt.Sprintf("&_txlock=immediate&_pragma=cache_size(-%d)", foldCacheKiB))); err != nil {
		return false, err
	}
	f.writer.SetMaxOpenConns(1)
	var fold string
	err = f.writer.QueryRowContext(ctx, `SELECT fold FROM state_checkpoint WHERE one = 1`).Scan(&fold)
	if errors.Is(err, sql.ErrNoRows) || err != nil && missingTable(err) {
		return false, nil
	}
	if err != nil || fold != f.fold {
		return false, err
	}
	return true, f.openReader(ctx)
}

// missingTable tells a file without our tables from one that cannot be read.
func missingTable(err error) bool {
	var code interface{ Code() int }
	return errors.As(err, &code) && code.Code() == 1
}

func (f *file) openReader(ctx context.Context) (err error) {
	if f.reader, err = sql.Open("sqlite", f.dsn("&_pragma=query_only(1)")); err != nil {
		return err
	}
	f.reader.SetMaxOpenConns(readers)
	f.reader.SetMaxIdleConns(readers)
	if f.head, err = f.reader.PrepareContext(ctx, `SELECT `+headColumns+` FROM state_head WHERE aggregate = ?`); err != nil {
		return err
	}
	f.living, err = f.reader.PrepareContext(ctx, `SELECT EXISTS (SELECT 1 FROM state_head WHERE aggregate = ? AND living > 0)`)
	return err
}

// again makes an empty file in the place of what there is.
func (f *file) again(ctx context.Context) error {
	if err := f.close(); err != nil {
		return err
	}
	for _, p := range []string{f.path, f.path + "-wal", f.path + "-shm", f.spoiled()} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(err, fault.Unavailable, "the read models' file cannot be replaced")
		}
	}
	if err := f.create(ctx); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the read models' file cannot be made")
	}
	return nil
}

func (f *file) create(ctx context.Context) error {
	h, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := h.Close(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writer, err = sql.Open("sqlite", f.dsn(fmt.Sprintf("&_txlock=immediate&_pragma=cache_size(-%d)", foldCacheKiB))); err != nil {
		return err
	}
	f.writer.SetMaxOpenConns(1)
	tx, err := f.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, s := range f.schema {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%w in %.60s", err, s)
		}
	}
	if err := writeCheckpoint(ctx, tx, f.fold, eventlog.BaseCheckpoint{}, time.Time{}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return f.openReader(ctx)
}

// checkpoint reads where the file stands.
func (f *file) checkpoint(ctx context.Context) (c eventlog.BaseCheckpoint, at time.Time, err error) {
	var fold string
	var ms, hash int64
	if err = f.reads().QueryRowContext(ctx, `SELECT fold, seq, commit_hash, epoch, aggregates, at, hash FROM state_checkpoint`).
		Scan(&fold, &c.Seq, &c.Hash, &c.Epoch, &c.Aggregates, &ms, &hash); err != nil {
		return eventlog.BaseCheckpoint{}, at, err
	}
	at = time.UnixMilli(ms).UTC()
	if hash != checkpointHash(fold, c, at) {
		return eventlog.BaseCheckpoint{}, at, ErrRow
	}
	return c, at, nil
}

// slim gives back the memory of the fold at start.
func (f *file) slim(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lean {
		return nil
	}
	for _, q := range []string{fmt.Sprintf(`PRAGMA cache_size = -%d`, serveCacheKiB), `PRAGMA shrink_memory`} {
		if _, err := f.writer.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	f.lean = true
	return nil
}

func (f *file) begin(ctx context.Context) (*sql.Tx, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.writer.BeginTx(ctx, nil)
}

func (f *file) reads() *sql.DB {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.reader
}

func (f *file) headStmt() *sql.Stmt {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.head
}

func (f *file) livingStmt() *sql.Stmt {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.living
}

func (f *file) spoiled() string { return f.path + "-spoiled" }

// spoil leaves word for the next start; false: it is there already.
func (f *file) spoil() bool {
	h, err := os.OpenFile(f.spoiled(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	_ = h.Close()
	return true
}

// close gives the handles back. The last connection folds the write-ahead log into the file.
func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.reader != nil {
		err = f.reader.Close()
	}
	if f.writer != nil {
		err = errors.Join(err, f.writer.Close())
	}
	f.reader, f.writer, f.head, f.living, f.lean = nil, nil, nil, nil, false
	return err
}
