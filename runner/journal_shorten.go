package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// due reports that the journal has grown enough to be shortened.
func (j *journal) due() bool {
	keyed := len(j.keys)
	ended := len(j.entries) - len(j.open) - keyed
	return j.size >= j.notBefore && (j.size > max(j.shortenAt, compactBytes+int64(keyed)*keyedBytes) || ended > 2*j.keep ||
		keyed > j.keepKeys+j.keepKeys/4)
}

// shorten forgets old ends, in memory and in the file. Nothing is written meanwhile.
//
// A forgotten id is absent, and absence proves that nothing was started. Most ids that are
// forgotten were started, so the generation ends: the server compares it with the one that was
// in force when it sent the offer, and takes absence in another one for no proof. Ids whose
// end is not acknowledged are never forgotten.
func (j *journal) shorten() {
	j.syncMu.Lock()
	j.mu.Lock()
	done, err := false, error(nil)
	if j.broken == nil && j.due() {
		next := j.life
		done, err = true, j.rewrite(next)
	}
	j.mu.Unlock()
	j.syncMu.Unlock()
	if done && j.onShorten != nil {
		j.onShorten(err)
	}
}

// rewrite replaces the file by a shorter one and goes on in it, in a new generation.
func (j *journal) rewrite(next life) error {
	next.Generation = event.NewNonce()
	d, err := j.draft(next)
	if err == nil {
		err = j.adopt(d)
	}
	if err != nil {
		// The long file is as good as before; the next attempt waits until it has grown.
		j.notBefore = j.size + retryShorten
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// draft makes the successor of the journal beside it, whole and durable.
func (j *journal) draft(next life) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(j.dir, draftName), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	d := newJournal(f)
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		next.Device, next.Inode, err = identify(f)
	}
	if err == nil {
		err = j.copyTo(d)
	}
	if err == nil {
		err = d.append(record{Life: &next, At: event.FormatTime(j.now())})
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}
	return d, nil
}

// adopt puts a draft in the journal's place. Until the directory is synced a power cut may
// bring the old file back, so nothing is written before.
func (j *journal) adopt(d *journal) error {
	if err := os.Rename(d.file.Name(), filepath.Join(j.dir, logName)); err != nil {
		_ = d.file.Close()
		return err
	}
	_ = j.file.Close()
	j.file, j.size, j.synced, j.life = d.file, d.size, d.size, d.life
	j.entries, j.open, j.keys, j.seq = d.entries, d.open, d.keys, d.seq
	j.shortenAt, j.notBefore = max(compactBytes, 2*j.size), 0
	if err := syncDir(j.dir); err != nil {
		j.broken = fmt.Errorf("journal: %w", err)
		return err
	}
	return nil
}

func (j *journal) copyTo(d *journal) error {
	keep := j.kept()
	var now life
	for _, id := range bySeq(j.entries) {
		if !keep[id] {
			continue
		}
		if e := j.entries[id]; e.life != now {
			now = e.life
			l := now
			if err := d.append(record{Life: &l}); err != nil {
				return err
			}
		}
		if err := d.append(j.record(id)); err != nil {
			return err
		}
	}
	return nil
}

// kept picks what is open, the newest ends, at most keep and keptBytes of them, and of those with
// a key the newest keepKeys that are not too old.
func (j *journal) kept() map[event.ExecutionID]bool {
	keep, ends, size, keyed := map[event.ExecutionID]bool{}, 0, 0, 0
	oldest := event.FormatTime(j.now().Add(-keptKeyAge))
	for _, id := range slices.Backward(bySeq(j.entries)) {
		if j.open[id] != nil {
			keep[id] = true
			continue
		}
		if e := j.entries[id]; e.key != "" && keyed < j.keepKeys && e.at >= oldest {
			keyed++
			keep[id] = true
			continue
		}
		line, err := encodeLine(j.record(id))
		ends, size = ends+1, size+len(line)
		if err == nil && ends <= j.keep && size <= keptBytes {
			keep[id] = true
		}
	}
	return keep
}

// record is all that is known of an id in one line.
func (j *journal) record(id event.ExecutionID) record {
	e := j.entries[id]
	return record{ID: id, State: e.state, Digest: e.digest, Instance: e.instance, Project: e.project, At: e.at, Leader: e.leader, Key: e.key, Payload: e.payload,
		Result: e.result}
}

// final reports that nothing is owed for an id any more.
func final(s wire.JournalState) bool {
	switch s {
	case wire.JAccepted, wire.JStarting, wire.JRunning, wire.JTerminal:
		return false
	}
	return true
}
