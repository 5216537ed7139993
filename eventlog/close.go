package eventlog

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"webcodex/internal/fault"
)

var errStore = errors.New("the store reported a write error")

// Close refuses new commits, ends what reads the log (shutting_down), waits for commits in
// flight, stops the server, makes everything durable and gives the directory free. It is safe
// to call twice. Errors: fault persistence_uncertain, also when writing had ended before.
func (l *Log) Close() error {
	var err error
	l.closes.Do(func() {
		close(l.closing)
		l.gate.Lock()
		l.closed.Store(true)
		l.gate.Unlock()
		err = l.shutdown()
	})
	return err
}

func (l *Log) shutdown() error {
	close(l.stop)
	l.loops.Wait()
	l.stopServer()
	defer l.dir.close()
	defer l.closeBase()
	if l.opts.ReadOnly || l.Err() != nil {
		return l.Err() // the checkpoint stays unclean: the next start looks closely
	}
	if err := l.syncBlocks(); err != nil {
		return fault.Wrap(err, fault.PersistenceUncertain, "the disk did not confirm the log's last writes")
	}
	seq, hash := l.applied.read()
	l.synced.Store(seq)
	if err := l.writeCheckpoint(seq, hash, true); err != nil {
		return fault.Wrap(err, fault.PersistenceUncertain, "the log's checkpoint could not be written")
	}
	return nil
}

// abandon undoes a failed Open.
func (l *Log) abandon() {
	l.closes.Do(func() {
		close(l.stop)
		l.loops.Wait()
		l.stopServer()
		if l.dir != nil {
			l.closeBase()
			l.dir.close()
		}
	})
}

// closeBase lets the base write what is left while the directory is still held.
func (l *Log) closeBase() {
	c, ok := l.opts.Base.(io.Closer)
	if !ok {
		return
	}
	if err := c.Close(); err != nil {
		l.log.Warn("log: the read models were not closed cleanly; what they lack is folded at the next start", slog.Any("error", err))
	}
}

// stopServer waits for the server's own shutdown: the store is damaged if the process ends
// before.
func (l *Log) stopServer() {
	l.closeBuses()
	if l.admin != nil {
		l.admin.Close()
	}
	if l.srv != nil {
		l.srv.Shutdown()
		l.srv.WaitForShutdown()
	}
}

// syncBlocks makes every block durable that may not be. In durability always and group it
// finds nothing to write, since the committer was there before.
func (l *Log) syncBlocks() error {
	block, err := syncFrom(l.dir.blocks(), int(l.block.Load()))
	if err == nil {
		l.block.Store(int64(block))
	}
	return err
}

// checkpoints follows the log about once a second, never ahead of what is on the disk.
func (l *Log) checkpoints() {
	defer l.loops.Done()
	tick := time.NewTicker(checkpointInterval)
	defer tick.Stop()
	var done uint64
	var told string // the failure that was logged: a full disk fails every second
	for {
		select {
		case <-tick.C:
		case <-l.stop:
			return
		case <-l.failed:
			return
		}
		seq, hash := l.applied.read()
		if seq == done {
			continue
		}
		if l.opts.Durability == Process {
			if err := l.syncBlocks(); err != nil {
				l.fail(err, "sync_failed", "the disk did not confirm a write")
				return
			}
			l.synced.Store(seq)
		}
		if err := l.writeCheckpoint(seq, hash, false); err != nil {
			if err.Error() != told {
				told = err.Error()
				l.log.Warn("log: the checkpoint could not be written; it is tried again each second", slog.Any("error", err))
			}
			continue
		}
		done, told = seq, ""
	}
}

// readContext bounds one request to the embedded server.
func (l *Log) readContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), readTimeout)
}

// reading gives a context for reading the log, which ends with the caller's and, with
// shutting_down as its cause, when the log closes: the embedded server answers nobody then, and
// a reader would wait for readTimeout. The function ends it.
func (l *Log) reading(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-l.closing:
			cancel(shuttingDown())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// mayRead is asked before each commit that a reader is given: the context follows a moment
// after the log.
func (l *Log) mayRead(ctx context.Context) error {
	select {
	case <-l.closing:
		return shuttingDown()
	default:
	}
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	return nil
}
