package runner

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

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
	Project  event.ProjectID   `json:"j,omitempty"` // of the offer (accepted)
	At       string            `json:"at,omitempty"`
	// Leader is the started process, so that a later life can end what this one left running.
	Leader *proc.Identity `json:"p,omitempty"`
	// Key and Payload are of the offer (accepted).
	Key     string       `json:"k,omitempty"`
	Payload string       `json:"y,omitempty"`
	Result  *wire.Result `json:"r,omitempty"` // terminal, start_failed, refused: stripped
	// Life begins the records of one Runner life, and those after a shortening.
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
	project  event.ProjectID // empty where an old line did not say it
	state    wire.JournalState
	leader   *proc.Identity
	result   *wire.Result
	key      string // and payload: of its offer, see journal.keys
	payload  string
	at       string // of its newest step
	life     life
	seq      uint64 // orders by acceptance while it is open, by its end afterwards
}

// journal is the Runner's memory of what it did. An id moves only forward in it, and what it
// says is written before it is done. What has ended is forgotten after keptEnds newer ends, and
// the generation ends with it (shorten).
type journal struct {
	dir     string
	durable bool // what must be is synced
	now     func() time.Time
	// onShorten, if set, is told of each shortening, and why one failed. No lock is held.
	onShorten func(error)
	// keep is keptEnds and keepKeys is keptKeys, smaller in tests.
	keep, keepKeys int
	// aside names the damaged file that this one replaced at its start, and doubted the ids of
	// it that may have been started although no line says so.
	aside   string
	doubted []event.ExecutionID

	mu      sync.Mutex
	life    life
	file    *os.File
	size    int64 // bytes of whole lines
	entries map[event.ExecutionID]*entry
	open    map[event.ExecutionID]*entry // of entries, those the server has not acknowledged
	// keys finds the execution that an idempotency key stands for; one that is proven not to have
	// started gives its key free.
	keys   map[string]event.ExecutionID
	seq    uint64
	broken error // after it nothing is accepted any more
	// shortenAt and notBefore are sizes: the one at which the file is shortened, and the one
	// before which that is not tried again after it has failed.
	shortenAt, notBefore int64

	syncMu sync.Mutex // taken before mu
	synced int64
}

var (
	errJournalBusy = errors.New("another process has this Runner's directory")
	errAside       = fmt.Errorf("%d damaged journals lie there already", maxAside)
	errState       = errors.New("the journal does not allow this step")
	errKeyTaken    = errors.New("this idempotency key stands for another execution")
)

// openJournal locks and reads dir/journal and begins a new life in it.
func openJournal(dir string, sync bool, now func() time.Time) (*journal, error) {
	path := filepath.Join(dir, "journal")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	f, err := lockLog(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := newJournal(f)
	j.dir, j.durable, j.now = path, sync, now
	if err := j.begin(); err != nil {
		_ = j.file.Close()
		return nil, fmt.Errorf("journal: %w", err)
	}
	return j, nil
}

func newJournal(f *os.File) *journal {
	return &journal{file: f, keep: keptEnds, keepKeys: keptKeys, shortenAt: compactBytes,
		entries: map[event.ExecutionID]*entry{}, open: map[event.ExecutionID]*entry{}, keys: map[string]event.ExecutionID{}}
}

func (j *journal) begin() error {
	device, inode, err := identify(j.file)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(j.dir, draftName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	boot := proc.BootID()
	if boot == "" {
		boot = "unknown-" + event.NewNonce() // no two lives are then known to share a boot
	}
	sound, err := j.load(boot)
	if err == nil && !sound {
		err = j.setAside()
	}
	if err != nil {
		return err
	}
	generation, copied := j.life.Generation, j.life.Generation != "" && (j.life.Device != device || j.life.Inode != inode)
	// A journal that is new, damaged, or a copy of another cannot prove by absence that
	// something did not happen (faults.md 3, crash table).
	if !sound || generation == "" || copied {
		generation = event.NewNonce()
	}
	now := life{Generation: generation, Boot: boot, Synced: j.durable, Device: device, Inode: inode}
	if !sound || copied {
		j.doubt()
	}
	if !sound || copied || j.due() {
		err = j.rewrite(now)
	} else {
		err = j.append(record{Life: &now, At: event.FormatTime(j.now())})
		err = errors.Join(err, syncFile(j.file), syncDir(j.dir))
		j.synced = j.size
	}
	return errors.Join(err, syncDir(filepath.Dir(j.dir)))
}

// doubt closes what a damaged journal, or an old copy, says was not started yet: the line of its
// start may be the one that cannot be read, or that was written after the copy was made.
func (j *journal) doubt() {
	for _, id := range bySeq(j.open) {
		// The directory of a detached Job knows better.
		job := filepath.Join(jobsDir(filepath.Dir(j.dir)), string(id))
		if j.open[id].state == wire.JAccepted && !proven(job) {
			j.apply(record{ID: id, State: wire.JLost})
			j.doubted = append(j.doubted, id)
		}
	}
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

// find gives a copy of what is known about an id; of one that is absent, the life in which it
// is.
func (j *journal) find(id event.ExecutionID) (entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.entries[id]
	if !ok {
		return entry{life: j.life}, false
	}
	return *e, true
}

// current is the life that new records belong to; a shortening changes its generation.
func (j *journal) current() life {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.life
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
	if err == nil && r.Key != "" && j.keys[r.Key] != "" {
		err = errKeyTaken
	}
	if err == nil {
		err = j.append(r)
	}
	upTo, due := j.size, j.due()
	j.mu.Unlock()
	if err == nil && durable && j.durable {
		err = j.sync(upTo)
	}
	if err == nil && due && final(r.State) {
		j.shorten()
	}
	return err
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
		j.seq++
		e = &entry{life: j.life, seq: j.seq}
		j.entries[r.ID], j.open[r.ID] = e, e
	}
	if e.state = r.State; final(r.State) {
		j.seq++
		e.seq = j.seq
		delete(j.open, r.ID)
	}
	if r.Digest != "" {
		e.digest = r.Digest
	}
	if r.Instance != "" {
		e.instance = r.Instance
	}
	if r.Project != "" {
		e.project = r.Project
	}
	if r.Leader != nil {
		e.leader = r.Leader
	}
	if r.Result != nil {
		e.result = r.Result
	}
	if r.At != "" {
		e.at = r.At
	}
	j.bind(r.ID, e, r)
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

// unsettled lists the ids whose end the server has not acknowledged, oldest first: the newest
// of them, bounded. Its cost is theirs alone.
func (j *journal) unsettled(limit int) []wire.JobSummary {
	j.mu.Lock()
	defer j.mu.Unlock()
	ids := bySeq(j.open)
	out := []wire.JobSummary{}
	for _, id := range ids[max(0, len(ids)-limit):] {
		out = append(out, wire.JobSummary{ID: id, State: j.open[id].state})
	}
	return out
}

// owing is how many ids the server has not acknowledged.
func (j *journal) owing() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.open)
}

func bySeq(m map[event.ExecutionID]*entry) []event.ExecutionID {
	return slices.SortedFunc(maps.Keys(m), func(a, b event.ExecutionID) int { return cmp.Compare(m[a].seq, m[b].seq) })
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = os.ErrClosed
	return errors.Join(syncFile(j.file), j.file.Close())
}

// stripped is what of a result may lie on a disk: numbers and closed words.
func stripped(r wire.Result) *wire.Result {
	out := wire.Result{ID: r.ID, Digest: r.Digest, Instance: r.Instance, State: r.State, DurationMS: r.DurationMS, EndedAt: r.EndedAt}
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
