package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// record is one line of the journal. It holds no text of a command and no output (law 8).
type record struct {
	ID       event.ExecutionID `json:"id,omitempty"`
	State    wire.JournalState `json:"s,omitempty"`
	Digest   string            `json:"d,omitempty"`
	Instance event.InstanceID  `json:"i,omitempty"`
	At       string            `json:"at,omitempty"`
	// Leader is the started process, so that a later life can end what this one left running.
	Leader *proc.Identity `json:"p,omitempty"`
	Result *wire.Result   `json:"r,omitempty"` // terminal, start_failed, refused: stripped
	// Life begins the records of one Runner life.
	Life *life `json:"life,omitempty"`
}

// life is what the records after it have in common.
type life struct {
	Generation string `json:"generation"`
	Boot       string `json:"boot"`
	Synced     bool   `json:"synced"` // starting is durable before a start
	Device     uint64 `json:"device"` // of the journal file itself: a copy is not the journal
	Inode      uint64 `json:"inode"`
}

// entry is what the journal knows about one id.
type entry struct {
	digest   string
	instance event.InstanceID
	state    wire.JournalState
	leader   *proc.Identity
	result   *wire.Result
	life     life
}

// journal is the Runner's memory of what it did. An id moves only forward in it, and what it
// says is written before it is done.
type journal struct {
	life life
	now  func() time.Time

	mu      sync.Mutex
	file    *os.File
	size    int64 // bytes of whole lines
	entries map[event.ExecutionID]*entry
	order   []event.ExecutionID
	broken  error // after it nothing is accepted any more

	syncMu sync.Mutex
	synced int64
}

var (
	errJournalBusy = errors.New("another process has this Runner's directory")
	errState       = errors.New("the journal does not allow this step")
)

// openJournal locks and reads dir/journal and begins a new life in it.
func openJournal(dir string, sync bool, now func() time.Time) (*journal, error) {
	path := filepath.Join(dir, "journal")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(path, "log"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("journal: %w", errJournalBusy)
	}
	j := &journal{file: f, now: now, entries: map[event.ExecutionID]*entry{}}
	if err := j.begin(path, sync); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("journal: %w", err)
	}
	return j, nil
}

func (j *journal) begin(path string, sync bool) error {
	device, inode, err := identify(j.file)
	if err != nil {
		return err
	}
	sound, err := j.load()
	if err != nil {
		return err
	}
	generation := j.life.Generation
	// A journal that is new, damaged, a copy of another, or shortened to save space cannot
	// prove by absence that something did not happen (faults.md 3, crash table).
	if !sound || generation == "" || j.life.Device != device || j.life.Inode != inode {
		generation = event.NewNonce()
	}
	if j.size > compactBytes {
		if err := j.compact(path); err != nil {
			return err
		}
		if device, inode, err = identify(j.file); err != nil {
			return err
		}
		generation = event.NewNonce()
	}
	boot := proc.BootID()
	if boot == "" {
		boot = "unknown-" + event.NewNonce() // no two lives are then known to share a boot
	}
	j.life = life{Generation: generation, Boot: boot, Synced: sync, Device: device, Inode: inode}
	if err := j.append(record{Life: &j.life, At: event.FormatTime(j.now())}); err != nil {
		return err
	}
	if err := syncFile(j.file); err != nil {
		return err
	}
	j.synced = j.size
	return errors.Join(syncDir(path), syncDir(filepath.Dir(path)))
}

// steps are the moves of an id. Every state but settled may be reached by recovery too.
var steps = map[wire.JournalState][]wire.JournalState{
	"":                {wire.JAccepted, wire.JRefused, wire.JNever},
	wire.JAccepted:    {wire.JNever, wire.JStarting, wire.JStartFailed, wire.JLost},
	wire.JStarting:    {wire.JRunning, wire.JStartFailed, wire.JTerminal, wire.JLost},
	wire.JRunning:     {wire.JTerminal, wire.JLost},
	wire.JTerminal:    {wire.JSettled},
	wire.JStartFailed: {},
	wire.JRefused:     {},
	wire.JNever:       {},
	wire.JLost:        {},
	wire.JSettled:     {},
}

// find gives a copy of what is known about an id.
func (j *journal) find(id event.ExecutionID) (entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.entries[id]
	if !ok {
		return entry{}, false
	}
	return *e, true
}

// step moves an id forward, written before it returns and, where durable is asked for and the
// mode has it, synced. It fails where the id is not in one of the states it may come from.
func (j *journal) step(r record, durable bool) error {
	r.At = event.FormatTime(j.now())
	if r.Result != nil {
		r.Result = stripped(*r.Result)
	}
	j.mu.Lock()
	var from wire.JournalState
	if e := j.entries[r.ID]; e != nil {
		from = e.state
	}
	err := j.broken
	if err == nil && !slices.Contains(steps[from], r.State) {
		err = fmt.Errorf("%w: %s after %q", errState, r.State, from)
	}
	if err == nil {
		err = j.append(r)
	}
	upTo := j.size
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if durable && j.life.Synced {
		return j.sync(upTo)
	}
	return nil
}

// append writes one line. A line that could not be written whole is taken back, so that what
// follows is readable.
func (j *journal) append(r record) error {
	line, err := encodeLine(r)
	if err != nil {
		return err
	}
	if _, err := j.file.WriteAt(line, j.size); err != nil {
		if terr := j.file.Truncate(j.size); terr != nil {
			j.broken = fmt.Errorf("journal: %w", terr)
		}
		return fmt.Errorf("journal: %w", err)
	}
	j.size += int64(len(line))
	j.apply(r)
	return nil
}

func (j *journal) apply(r record) {
	if r.Life != nil {
		j.life = *r.Life
		return
	}
	e := j.entries[r.ID]
	if e == nil {
		e = &entry{life: j.life}
		j.entries[r.ID] = e
		j.order = append(j.order, r.ID)
	}
	e.state = r.State
	if r.Digest != "" {
		e.digest = r.Digest
	}
	if r.Instance != "" {
		e.instance = r.Instance
	}
	if r.Leader != nil {
		e.leader = r.Leader
	}
	if r.Result != nil {
		e.result = r.Result
	}
}

// sync makes everything up to an offset durable; concurrent callers share one fdatasync. The
// first error ends writing: the pages may be gone although a second call says nothing.
func (j *journal) sync(upTo int64) error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if j.synced >= upTo {
		return nil
	}
	j.mu.Lock()
	size, broken := j.size, j.broken
	j.mu.Unlock()
	if broken != nil {
		return broken
	}
	if err := syncFile(j.file); err != nil {
		j.mu.Lock()
		j.broken = fmt.Errorf("journal: %w", err)
		j.mu.Unlock()
		return j.broken
	}
	j.synced = size
	return nil
}

// unsettled lists the ids whose end the server has not acknowledged, oldest first, bounded.
func (j *journal) unsettled(limit int) []wire.JobSummary {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := []wire.JobSummary{}
	for _, id := range slices.Backward(j.order) {
		switch s := j.entries[id].state; s {
		case wire.JAccepted, wire.JStarting, wire.JRunning, wire.JTerminal:
			out = append(out, wire.JobSummary{ID: id, State: s})
		}
		if len(out) == limit {
			break
		}
	}
	slices.Reverse(out)
	return out
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = os.ErrClosed
	return errors.Join(syncFile(j.file), j.file.Close())
}

// stripped is what of a result may lie on a disk: numbers and closed words.
func stripped(r wire.Result) *wire.Result {
	out := wire.Result{ID: r.ID, Digest: r.Digest, Instance: r.Instance, State: r.State, DurationMS: r.DurationMS}
	if r.Fault != nil {
		f := *r.Fault
		f.Message, f.Next, f.Field, f.Details = keptNote, "", "", nil
		out.Fault = &f
	}
	if r.Process != nil {
		p := *r.Process
		p.Stdout.Text, p.Stderr.Text = "", ""
		p.Stdout.Truncated, p.Stdout.DroppedBytes = p.Stdout.Bytes > 0, p.Stdout.Bytes
		p.Stderr.Truncated, p.Stderr.DroppedBytes = p.Stderr.Bytes > 0, p.Stderr.Bytes
		p.LeftoverAlive = nil
		if p.Tests != nil {
			t := *p.Tests
			t.FailedTests, t.Diagnostics = nil, nil
			p.Tests = &t
		}
		out.Process = &p
	}
	return &out
}

const keptNote = "the Runner was restarted since; of this failure only its kind was kept"

// decodeRecord reads the JSON part of a line.
func decodeRecord(b []byte) (record, error) {
	var r record
	err := json.Unmarshal(b, &r)
	return r, err
}
