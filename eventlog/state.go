package eventlog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Log is the open log of one data directory. It is safe for concurrent use.
type Log struct {
	opts  Options
	log   *slog.Logger
	dir   *dir
	auth  *authority
	srv   *server.Server
	admin *nats.Conn // reads and the feed; publications have their own connection
	js    jetstream.JetStream
	// stream is the handle made at start; every other way to it costs a request.
	stream jetstream.Stream
	space  *space
	boot   string

	busMu     sync.Mutex
	buses     []*nats.Conn
	busClosed bool

	// gate is held for reading by every Append until its outcome is known, so that Close
	// drains by taking it for writing.
	gate   sync.RWMutex
	closed atomic.Bool // set under the gate, read without it: a fold may ask while Close waits
	closes sync.Once
	// closing is closed when Close begins: who reads the log ends then, before what is in flight.
	closing chan struct{}

	writer *committer // nil before the log takes commits
	submit chan *entry
	stop   chan struct{}  // closed when nothing more will be submitted
	loops  sync.WaitGroup // the committer and the checkpoint writer

	failOnce sync.Once
	failed   chan struct{}
	failure  *fault.Error // set before failed is closed

	chain  *chain
	mu     sync.RWMutex // guards epoch and pruned
	epoch  string
	pruned uint64        // first sequence that the newest log.pruned allows
	first  atomic.Uint64 // where the log begins
	prune  pruning

	checkpointMu sync.Mutex // writes the checkpoint file
	checkpointed uint64     // sequence of the last one

	opened        opened         // written by Open alone, as are the next two
	checked       BaseCheckpoint // the checkpoint's commit as it was read from the log
	budgetChanged bool

	evidence *evidence // what is known of the block files
	// unwitnessed: the witness could not tell how far the log went, written by the examination.
	unwitnessed bool

	applied position // what the folds have seen
	synced  atomic.Uint64
	block   atomic.Int64 // every block file before this index is synced and sealed

	fileSystem string // under the data directory
}

// opened is what Open found out.
type opened struct {
	at       time.Time
	server   time.Duration
	feed     time.Duration
	tailLost bool
	resumed  bool   // from the base's checkpoint
	first    uint64 // where the log began then
	folded   uint64
	reset    string // why the base was reset
}

// position is a sequence that can be waited for.
type position struct {
	mu      sync.Mutex
	seq     uint64
	hash    string
	waiting chan struct{} // closed at the next move; nil while nobody waits
}

func (p *position) move(seq uint64, hash string) {
	p.mu.Lock()
	p.seq, p.hash = seq, hash
	if p.waiting != nil {
		close(p.waiting)
		p.waiting = nil
	}
	p.mu.Unlock()
}

func (p *position) read() (uint64, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq, p.hash
}

func (p *position) wait(ctx context.Context, seq uint64) error {
	for {
		p.mu.Lock()
		if p.seq >= seq {
			p.mu.Unlock()
			return nil
		}
		if p.waiting == nil {
			p.waiting = make(chan struct{})
		}
		moved := p.waiting
		p.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "the log did not reach the awaited commit in time")
		}
	}
}

// WaitApplied returns when every fold has seen seq. Errors: fault timeout when ctx ends first.
func (l *Log) WaitApplied(ctx context.Context, seq uint64) error { return l.applied.wait(ctx, seq) }

// SyncedSeq is the newest sequence known to be on the disk itself. In durability always no
// reply, fold or reader is ever ahead of it; in process it follows within about a second.
func (l *Log) SyncedSeq() uint64 { return l.synced.Load() }

// Epoch is the random name of this history; a tail lost to a power cut changes it.
func (l *Log) Epoch() string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.epoch
}

// Failed is closed when writing has ended in this life: after the first sync error, a full
// disk or a foreign writer. The process should exit and come back through Open.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err is the fault that ended writing, or nil.
func (l *Log) Err() error {
	select {
	case <-l.failed:
		return l.failure
	default:
		return nil
	}
}

// fail ends writing. Nothing is synced again and called good.
func (l *Log) fail(cause error, reason, why string) {
	l.failOnce.Do(func() {
		next := "restart WebCodex; it checks the log and goes on from what is durable"
		if f := (*fault.Error)(nil); errors.As(cause, &f) && f.Kind == fault.LogDamaged {
			next = f.Next // a start would refuse the log
		}
		l.failure = fault.Wrap(cause, fault.PersistenceUncertain, "the log stopped writing: %s", why).
			WithReason(reason).WithNext("%s", next)
		l.log.Error("log: writing ended", slog.String("reason", reason), slog.Any("error", cause))
		close(l.failed)
	})
}

// Head implements Appender.
func (l *Log) Head(a event.Aggregate) (Head, error) {
	return l.chain.head(a)
}

// Admit implements Appender.
func (l *Log) Admit() error {
	if err := l.ended(); err != nil {
		return err
	}
	if l.opts.ReadOnly {
		return fault.New(fault.Unavailable, "the log is open for reading only")
	}
	if l.closed.Load() {
		return shuttingDown()
	}
	return l.admit()
}

// admit refuses new work of which nothing was written yet.
func (l *Log) admit() error {
	if err := l.evidence.admit(); err != nil {
		return err
	}
	return l.space.admit()
}

// ended is what a draft is told that comes after writing has ended, nil while it goes on. Where
// damage ended it the draft hears of that: nothing about it is uncertain.
func (l *Log) ended() error {
	err := l.Err()
	if err == nil {
		return nil
	}
	if damage := l.evidence.admit(); damage != nil {
		return damage
	}
	return err
}

func shuttingDown() *fault.Error {
	return fault.New(fault.ShuttingDown, "the server is shutting down").WithNext("call again when it is back")
}
