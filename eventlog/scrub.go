package eventlog

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"webcodex/internal/fault"
)

const scrubName = "scrub.json"

// ScrubResult is the last pass over all sealed blocks in the background.
type ScrubResult struct {
	At      time.Time     `json:"at"` // of its end; zero: there was none yet
	Blocks  int           `json:"blocks"`
	Bytes   int64         `json:"bytes"`
	Damaged []BlockDamage `json:"damaged,omitempty"`
}

// tend runs until the log stops writing: it brings sealed blocks into the ledger, proves old
// ones that the ledger lacks, and reads every block again from time to time. It holds up no
// commit: it takes no lock that one needs and reads slowly.
func (l *Log) tend() {
	defer l.loops.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-l.stop:
		case <-l.failed:
		}
		cancel()
	}()
	e := l.evidence
	e.readScrub()
	e.prove(ctx)
	tick := time.NewTicker(sealInterval)
	defer tick.Stop()
	told := ""
	begun := time.Now()
	for looked := begun; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := e.fill(); err != nil {
			if ctx.Err() == nil && err.Error() != told {
				told = err.Error()
				l.log.Warn("log: the block ledger could not be written; it is tried again each second", slog.Any("error", err))
			}
			continue
		}
		told = ""
		if time.Since(looked) >= tailEvery {
			looked = time.Now()
			e.lookAtTail()
		}
		if l.opts.ScrubRate >= 0 && time.Since(begun) >= scrubDelay && l.opts.Now().Sub(e.lastScrub().At) >= l.scrubEvery() {
			e.pass(ctx)
		}
	}
}

func (l *Log) scrubRate() int64 {
	if l.opts.ScrubRate > 0 {
		return l.opts.ScrubRate
	}
	return scrubRate
}

func (l *Log) scrubEvery() time.Duration {
	if l.opts.ScrubEvery > 0 {
		return l.opts.ScrubEvery
	}
	return scrubEvery
}

// lookAtTail reads the newest block, whose end may be just being written. Damage in it ends
// writing: JetStream cuts the file where it next finds the record, with all that is behind.
func (e *evidence) lookAtTail() {
	applied, _ := e.l.applied.read()
	d, err := e.tailDamage(applied)
	if err != nil || d == nil {
		return
	}
	e.note(*d)
	e.l.fail(damaged([]BlockDamage{*d}), d.Reason, "its newest block is damaged")
}

// tailDamage tells whether the newest block gives every commit up to one that stood before
// the call.
func (e *evidence) tailDamage(applied uint64) (*BlockDamage, error) {
	index, err := blockIndexes(e.l.dir.blocks())
	if err != nil || len(index) == 0 {
		return nil, err
	}
	i := slices.Max(index)
	f, err := readFacts(e.file(i), i, 0)
	if err != nil || !f.bad() || f.last >= applied {
		return nil, err
	}
	return &BlockDamage{Block: i, Reason: damageFlipped, FirstSeq: f.last + 1}, nil
}

// prove reads the whole log through where the ledger lacks blocks of earlier lives and the
// start did not fold them: what enters it must be known good.
func (e *evidence) prove(ctx context.Context) {
	lacks := false
	index, err := blockIndexes(e.l.dir.blocks())
	for _, i := range index {
		if _, known := e.sealed(i); !known && i < e.alive {
			lacks = true
		}
	}
	if err != nil || !lacks || e.proved.Load() {
		return
	}
	if err := e.l.Replay(ctx, Range{}, func(Entry) error { return ctx.Err() }); err == nil {
		e.proved.Store(true)
	} else if ctx.Err() == nil && fault.KindOf(err) != fault.ShuttingDown {
		e.l.log.Error("log: old blocks could not be proved for the block ledger", slog.Any("error", err))
	}
}

// pass reads every sealed block once and compares it with the ledger.
func (e *evidence) pass(ctx context.Context) {
	r := ScrubResult{}
	for _, s := range e.list() {
		e.rest(ctx)
		d, err := e.hash(s, func(f io.Reader) io.Reader { return &slowReader{ctx: ctx, r: f, rate: e.l.scrubRate()} })
		if err != nil {
			if ctx.Err() == nil {
				e.l.log.Warn("log: a block could not be read by the scrub", slog.Any("error", err))
			}
			return
		}
		r.Blocks++
		r.Bytes += s.size
		if d != nil {
			r.Damaged = append(r.Damaged, *d)
		}
	}
	if ctx.Err() != nil {
		return
	}
	e.lookAtTail()
	if base := e.l.opts.Base; base != nil {
		if err := base.Scrub(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			e.l.log.Warn("log: the read models could not be read through by the scrub", slog.Any("error", err))
		}
	}
	r.At = e.l.opts.Now().UTC().Truncate(time.Millisecond)
	e.mu.Lock()
	e.scrub = r
	e.mu.Unlock()
	if err := e.l.dir.writeFile(scrubName, r); err != nil {
		e.l.log.Warn("log: the scrub's result could not be written", slog.Any("error", err))
	}
}

// rest waits while the log is busy, for a while.
func (e *evidence) rest(ctx context.Context) {
	for begun := time.Now(); time.Since(begun) < scrubDefer; {
		before, _ := e.l.applied.read()
		if !pause(ctx, busyLook) {
			return
		}
		if after, _ := e.l.applied.read(); after-before < busyCommits {
			return
		}
	}
}

// slowReader reads so many bytes a second at most.
type slowReader struct {
	ctx  context.Context
	r    io.Reader
	rate int64
}

func (s *slowReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if n > 0 && !pause(s.ctx, time.Duration(float64(n)/float64(s.rate)*float64(time.Second))) {
		return n, s.ctx.Err()
	}
	return n, err
}

// pause reports false where ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *evidence) lastScrub() ScrubResult {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.scrub
}

// readScrub takes over the result of an earlier life. A file that is none means a new pass.
func (e *evidence) readScrub() {
	b, err := os.ReadFile(e.l.dir.file(scrubName))
	var r ScrubResult
	if err != nil || json.Unmarshal(b, &r) != nil {
		return
	}
	e.mu.Lock()
	e.scrub = r
	e.mu.Unlock()
}

// Ledger states of EvidenceStatus.
const (
	LedgerOK         = "ok"
	LedgerIncomplete = "incomplete" // blocks wait until the log has proved itself
)

// EvidenceStatus tells of the block ledger, the last scrub and the damage found in this life.
type EvidenceStatus struct {
	Ledger  string        `json:"ledger"` // LedgerOK, LedgerIncomplete, ledger_missing, ledger_damaged
	Blocks  int           `json:"blocks"` // in the ledger
	Scrub   ScrubResult   `json:"scrub"`
	Damaged []BlockDamage `json:"damaged,omitempty"`
}

func (e *evidence) status() EvidenceStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := EvidenceStatus{Ledger: LedgerOK, Blocks: len(e.blocks), Scrub: e.scrub}
	s.Damaged = slices.SortedFunc(maps.Values(e.bad), byBlock)
	if e.reason != "" {
		s.Ledger = e.reason
	} else if e.lacking {
		s.Ledger = LedgerIncomplete
	}
	return s
}
