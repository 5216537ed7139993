package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// Options of Open.
type Options struct {
	// Path of the file. It is made 0600; with it come Path-wal and Path-shm.
	Path string
	// Fold is the version of all folds together. A file of another one is made again.
	Fold string
	// Models are fed in this order.
	Models []Model
	// Logger gets one line when the file is made again, and progress of a long fold. Nil: none.
	Logger *slog.Logger

	// after is the window's clock, for tests.
	after func(time.Duration) <-chan time.Time
}

// Keeper feeds the models and writes what they capture. It is the log's Base, safe for
// concurrent use.
type Keeper struct {
	opts Options
	log  *slog.Logger
	file file

	mu    sync.Mutex // guards all below, and the models between Apply and Capture
	room  *sync.Cond // signalled when behind shrinks or nobody waits for room any more
	heads map[event.Aggregate]change
	// writing are the changes of the batch that is being written.
	writing map[event.Aggregate]change
	at      eventlog.BaseCheckpoint // last commit applied
	written eventlog.BaseCheckpoint // last commit in the file
	last    time.Time               // when the last one applied was made
	first   time.Time               // first mark since the last capture; zero: none
	behind  int                     // commits applied since the last capture
	synced  func() uint64           // nil until the log serves
	failing string                  // why the last batch is not in the file
	opened  bool
	ended   bool
	told    time.Time // of the last progress line

	batchMu sync.Mutex // held by a batch, and by Reset
	mark    chan struct{}
	flush   chan chan error
	stop    chan struct{}
	done    chan struct{}
	closing sync.Once
	batches atomic.Uint64
}

var _ eventlog.Base = (*Keeper)(nil)

// New makes a Keeper and touches nothing: the log opens the file through Checkpoint, when it
// holds the lock of the data directory.
func New(o Options) *Keeper {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.after == nil {
		o.after = time.After
	}
	k := &Keeper{opts: o, log: o.Logger, heads: map[event.Aggregate]change{}, mark: make(chan struct{}, 1),
		flush: make(chan chan error), stop: make(chan struct{}), done: make(chan struct{})}
	k.room = sync.NewCond(&k.mu)
	k.file.path, k.file.fold, k.file.schema = o.Path, o.fold(), o.schema()
	return k
}

// Open is New with the file opened at once, for whoever holds the lock already. The error is
// of a directory that cannot be used.
func Open(ctx context.Context, o Options) (*Keeper, error) {
	k := New(o)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.open(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// open opens the file, or makes it where there is none, it is of another fold version, or is
// damaged; the log then folds everything anew.
func (k *Keeper) open(ctx context.Context) error {
	if k.opened {
		return nil
	}
	why, err := k.file.open(ctx)
	if err == nil && why == "" {
		why, err = k.load(ctx)
	} else if err == nil {
		err = k.loadModels(ctx)
	}
	if err != nil {
		return errors.Join(err, k.file.close())
	}
	switch why {
	case "":
	case whyNone:
		k.log.Info("the read models are made from the log")
	default:
		k.log.Warn("the read models are made again from the log", slog.String("reason", why))
	}
	k.opened = true
	go k.run()
	return nil
}

// load takes over what the file holds. A reason means that it was unreadable and is empty now.
func (k *Keeper) load(ctx context.Context) (why string, err error) {
	if k.written, k.last, err = k.file.checkpoint(ctx); err == nil {
		err = k.loadModels(ctx)
	}
	if err == nil {
		k.at = k.written
		return "", nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return reasonOf(err), k.again(ctx)
}

func (k *Keeper) loadModels(ctx context.Context) error {
	for _, m := range k.opts.Models {
		if l, ok := m.(Loader); ok {
			if err := l.Load(ctx, k.file.reads()); err != nil {
				return err
			}
		}
	}
	return nil
}

// again makes an empty file, and models that know nothing.
func (k *Keeper) again(ctx context.Context) error {
	if err := k.file.again(ctx); err != nil {
		return err
	}
	k.at, k.written, k.last = eventlog.BaseCheckpoint{}, eventlog.BaseCheckpoint{}, time.Time{}
	clear(k.heads)
	k.writing, k.first, k.behind, k.failing = nil, time.Time{}, 0, ""
	for _, m := range k.opts.Models {
		m.Reset()
	}
	return k.loadModels(ctx)
}

// fold is the version of everything that decides what the file holds.
func (o Options) fold() string {
	f := new(Fields).Text(o.Fold)
	for _, s := range o.schema() {
		f.Text(s)
	}
	return fmt.Sprintf("%d/%016x", FormatVersion, uint64(f.Hash()))
}

func (o Options) schema() []string {
	out := append([]string(nil), ownSchema...)
	for _, m := range o.Models {
		out = append(out, m.Schema()...)
	}
	return out
}

// Serve tells that the log is open: from now on nothing is written that is not durable there.
// What a start reads was durable before it was applied.
func (k *Keeper) Serve(synced func() uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.synced = synced
	k.room.Broadcast()
}

// Apply implements eventlog.Base: it feeds the models.
func (k *Keeper) Apply(a eventlog.Applied) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// While the log is folded at start the writer must keep up. A file that cannot be written
	// holds up nobody.
	for k.behind >= maxBehind && k.synced == nil && k.failing == "" && !k.ended {
		k.room.Wait()
	}
	if a.Seq <= k.at.Seq {
		return
	}
	for _, m := range k.opts.Models {
		m.Apply(a.Seq, a.Hash, a.Commit)
	}
	k.note(a)
	k.progress()
}

// note follows the chain's end and what the log says of itself.
func (k *Keeper) note(a eventlog.Applied) {
	c := change{head: eventlog.BaseHead{Head: eventlog.Head{Version: a.Commit.Version, Seq: a.Seq, Hash: a.Hash}, Root: a.Root}, first: a.First}
	k.touch(a.Commit.Aggregate, c)
	if a.First {
		k.at.Aggregates++
	}
	k.at.Seq, k.at.Hash, k.last = a.Seq, a.Hash, a.Commit.At
	for _, e := range a.Commit.Events {
		switch e := e.(type) {
		case event.LogCreated:
			k.at.Epoch = e.Epoch
		case event.LogTailLost:
			k.at.Epoch = e.Epoch
		case event.LogRestored:
			k.at.Epoch = e.Epoch
		case event.LogPruned:
			k.at.Epoch = e.Epoch
		case event.SessionRemoved:
			k.touch(event.SessionAggregate(e.Session), change{removed: true})
			k.touch(event.ExternalAggregate(e.Session), change{removed: true}) // where there is one
		default: // says nothing of the log or of where an aggregate ends
		}
	}
	k.behind++
	k.marked()
}

// Damage implements eventlog.Base.
func (k *Keeper) Damage(a event.Aggregate, d eventlog.Damage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.touch(a, change{damage: &d})
	k.marked()
}

func (k *Keeper) touch(a event.Aggregate, c change) { k.heads[a] = k.heads[a].then(c) }

// marked begins the window, or leaves the one that is open as it is.
func (k *Keeper) marked() {
	if k.first.IsZero() {
		k.first = time.Now()
		select {
		case k.mark <- struct{}{}:
		default:
		}
	}
}

func (k *Keeper) progress() {
	switch {
	case k.synced != nil:
	case k.told.IsZero():
		k.told = time.Now()
	case time.Since(k.told) >= progressEvery:
		k.told = time.Now()
		k.log.Warn("the log is being read into the read models", slog.Uint64("seq", k.at.Seq))
	}
}

// Checkpoint implements eventlog.Base. The first one opens the file.
func (k *Keeper) Checkpoint() (eventlog.BaseCheckpoint, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.open(context.Background()); err != nil {
		return eventlog.BaseCheckpoint{}, err
	}
	return k.written, nil
}

// Reset implements eventlog.Base.
func (k *Keeper) Reset(string) error {
	k.batchMu.Lock()
	defer k.batchMu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.open(context.Background()); err != nil {
		return err
	}
	return k.again(context.Background()) // the log tells of the reason
}

// QueryContext reads what is in the file.
func (k *Keeper) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return k.file.reads().QueryContext(ctx, query, args...)
}

// QueryRowContext reads a row of what is in the file.
func (k *Keeper) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return k.file.reads().QueryRowContext(ctx, query, args...)
}

// Mark asks for a batch though no commit came.
func (k *Keeper) Mark() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.marked()
}

// Spoiled tells that the file is damaged where no single record can be made again from the
// log. It stays in use for what can be read, and the next start makes it again.
func (k *Keeper) Spoiled(cause error) {
	if k.file.spoil() {
		k.log.Error("the read models are damaged; the next start makes them again from the log", slog.String("reason", reasonOf(cause)))
	}
}

// Status of the file, for people and for get_runtime_status.
type Status struct {
	// Seq is the last commit in the file, Applied the last one that the models have seen.
	Seq     uint64 `json:"seq"`
	Applied uint64 `json:"applied"`
	// LastPersistError is why the newest changes are in memory alone; empty after a good write
	// (RES-23). Nothing is lost by it: the log has them.
	LastPersistError string `json:"last_persist_error,omitempty"`
	// LastCommit is when the last commit applied was made; zero: there is none.
	LastCommit time.Time `json:"-"`
}

// Status gives the file's state; no I/O.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Status{Seq: k.written.Seq, Applied: k.at.Seq, LastPersistError: k.failing, LastCommit: k.last}
}

// LastPersistError is that of Status.
func (k *Keeper) LastPersistError() string { return k.Status().LastPersistError }

// Close writes what is left and gives the file free. The log calls it at its end, when all of
// it is durable. What cannot be written the next start folds again.
func (k *Keeper) Close() error {
	var err error
	k.closing.Do(func() {
		k.mu.Lock()
		k.ended = true
		opened := k.opened
		k.room.Broadcast()
		k.mu.Unlock()
		if !opened {
			return
		}
		close(k.stop)
		<-k.done
		err = errors.Join(k.lastBatch(), k.file.close())
	})
	return err
}

func (k *Keeper) lastBatch() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := k.batch(ctx); !errors.Is(err, errUnsynced) {
		return err
	}
	return nil
}

// reasonDamaged: SQLite found the file not to be one of its own.
const reasonDamaged = "damaged"

// reasonOf is an error in words that tell nothing of where the file lies.
func reasonOf(err error) string {
	var code interface{ Code() int }
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrRow):
		return "damaged_row"
	case !errors.As(err, &code):
		return "unreadable"
	}
	switch code.Code() & 0xff {
	case 5, 6:
		return "busy"
	case 8, 14:
		return "not_writable"
	case 10:
		return "io_error"
	case 11:
		return reasonDamaged
	case 13:
		return "disk_full"
	case 26:
		return "no_database"
	}
	return strings.ToLower(fmt.Sprintf("sqlite_%d", code.Code()))
}
