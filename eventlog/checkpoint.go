package eventlog

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"

	"webcodex/internal/fault"
)

// checkpoint is what the log itself is compared with at the next start. It is durable and
// never ahead of synced_seq, so a log that ends before it has lost something.
type checkpoint struct {
	Seq        uint64     `json:"seq"`
	Hash       string     `json:"hash"`
	Epoch      string     `json:"epoch"`
	Durability Durability `json:"durability"`
	// Block is the index of a block file before which all are durable, so that a start need
	// not sync them again.
	Block int `json:"block,omitempty"`
	// Pruned is the first sequence that the newest log.pruned allows; the log may begin there.
	Pruned uint64 `json:"pruned,omitempty"`
	// Clean is set by Close alone. Until then the store may end in an unclean stop.
	Clean bool `json:"clean"`
	// Boot names the life of the operating system: after an unclean stop in another one the
	// newest commits of process durability may be gone without a trace.
	Boot string `json:"boot,omitempty"`
	// Ledger is the newest block in the block ledger: one that knows less is not the newest.
	Ledger int `json:"ledger,omitempty"`
	// Seal is set by Close alone.
	Seal *seal `json:"seal,omitempty"`
}

// readCheckpoint reads the file; false means that there is none.
func (d *dir) readCheckpoint() (checkpoint, bool, error) {
	var c checkpoint
	b, err := os.ReadFile(d.file(checkpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fault.Wrap(err, fault.Unavailable, "the log's checkpoint cannot be read")
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, false, fault.New(fault.LogDamaged, "the log's checkpoint file is not readable as one").
			WithNext("restore the data directory from a backup, or move %s away to open the log without it", checkpointName)
	}
	return c, true, nil
}

// lostTail decides whether a log ending at last has lost its tail, given the checkpoint of
// its last life. A missing tail is an expected end of an unclean stop in process durability,
// and damage in every other case.
func (c checkpoint) lostTail(last uint64, boot string) (bool, error) {
	mayLose := c.Durability == Process && !c.Clean
	if last < c.Seq {
		if mayLose {
			return true, nil
		}
		return false, fault.New(fault.LogDamaged,
			"the log ends at sequence %d, but sequence %d was made durable", last, c.Seq).
			WithReason(damageTail).WithNext("%s", restoreBackup)
	}
	otherBoot := c.Boot == "" || boot == "" || c.Boot != boot
	return mayLose && otherBoot, nil
}

// proves tells that what a base has seen was durable in this very log: it is never ahead of
// synced_seq, and closer behind it than this file, which follows about once a second. Without
// the file nothing else tells how far the log went. After a clean stop it knows the end, and a
// base beyond it belongs to another log.
func (c checkpoint) proves(at BaseCheckpoint) bool {
	return !c.Clean && c.Durability != Process && (c.Epoch == "" || at.Epoch == c.Epoch)
}

// writeCheckpoint records a commit that is on the disk.
func (l *Log) writeCheckpoint(seq uint64, hash string, clean bool) error {
	l.checkpointMu.Lock()
	defer l.checkpointMu.Unlock()
	if seq < l.checkpointed {
		return nil // a prune was faster than the loop
	}
	l.checkpointed = seq
	c := checkpoint{Seq: seq, Pruned: l.prunedTo(), Hash: hash, Epoch: l.Epoch(), Durability: l.opts.Durability,
		Block: int(l.block.Load()), Clean: clean, Boot: l.boot}
	if clean {
		c.Seal = l.evidence.seal()
		c.Clean = !l.evidence.harmed()
	}
	c.Ledger = l.evidence.newest()
	return l.dir.writeFile(checkpointName, c)
}

// trim keeps a boot id to one line.
func trim(s string) string { return strings.TrimSpace(s) }
