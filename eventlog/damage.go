package eventlog

import (
	"fmt"
	"slices"

	"webcodex/internal/fault"
)

// Reasons of damage of the whole log, beside those of one record's chain.
const (
	damageFlipped  = "flipped_byte"  // a stored byte is not the one that was written
	damageMissing  = "block_missing" // a block file between others, or the ledger's, is gone
	damageTail     = "tail_lost"     // commits that were made durable are gone from the end
	damageHole     = "hole"          // a commit between others cannot be read
	damageForeign  = "foreign_log"   // not the log that the checkpoint and the ledger know
	damageOlder    = "older_log"     // an older copy of the log
	damageGone     = "log_missing"   // no block is left
	damageNewer    = "newer_log"     // written by a newer program
	damageLedger   = "ledger_damaged"
	damageNoLedger = "ledger_missing"
	damageFormat   = "format_missing" // blocks without the file that names their format and budget
)

// DamageClass says what a reason of damage means and what may be done about it (faults.md
// 2.12). Nothing else may be done by a program: every other way out loses something.
type DamageClass struct {
	Reason string
	Means  string // one sentence
	Repair string // one step
	// Lossless tells that `webcodex doctor --repair` does it, or the next start by itself.
	Lossless bool
}

const restoreBackup = "keep the data directory as it is and restore it from a backup"

var damageClasses = []DamageClass{
	{damageFlipped, "a byte of a stored commit is not the one that was written", restoreBackup, false},
	{damageMissing, "a block file of the log is gone", "put the file back, or " + restoreBackup, false},
	{damageTail, "commits at the end of the log that were made durable are gone", restoreBackup, false},
	{damageHole, "a commit in the middle of the log cannot be read", restoreBackup, false},
	{damageForeign, "the log is another one than this data directory's", "put the right log directory back, or restore the data directory from a backup", false},
	{damageOlder, "the log is an older copy than this data directory's", "put the newer log directory back, or restore the data directory from a backup", false},
	{damageGone, "the log's files are gone", "put the log directory back, or restore the data directory from a backup", false},
	{damageNewer, "the log was written by a newer program", "use that program, or another data directory", false},
	{damageLedger, "the block ledger cannot be read; the log itself is judged without it", "run webcodex doctor --repair: it is made again from the log, once every commit's chain holds", true},
	{damageNoLedger, "the block ledger is gone; the log itself is judged without it", "run webcodex doctor --repair: it is made again from the log, once every commit's chain holds", true},
	{damageFormat, "the data directory's format file is gone, but the log is there", "run webcodex doctor --repair: it is written again with the budget that the log's stream has", true},
	{damageVersion, "a commit of a record is missing or doubled", restoreBackup + "; other records go on", false},
	{damagePrev, "a commit does not follow from the one before", restoreBackup + "; other records go on", false},
	{damageUnreadable, "a stored commit cannot be read, or a newer program wrote it", restoreBackup + "; other records go on", false},
	{damageSubject, "a commit is stored under another record's name", restoreBackup + "; other records go on", false},
}

// ClassOf finds the class of a reason code; false: the reason names no damage.
func ClassOf(reason string) (DamageClass, bool) {
	i := slices.IndexFunc(damageClasses, func(c DamageClass) bool { return c.Reason == reason })
	if i < 0 {
		return DamageClass{}, false
	}
	return damageClasses[i], true
}

// BlockDamage tells of a block file that is not what was written.
type BlockDamage struct {
	Block  int    `json:"block,omitempty"` // the file's number; 0: unknown
	Reason string `json:"reason"`
	// FirstSeq and LastSeq bound the commits at risk; 0: unknown.
	FirstSeq uint64 `json:"first_seq,omitempty"`
	LastSeq  uint64 `json:"last_seq,omitempty"`
}

func (d BlockDamage) String() string {
	c, _ := ClassOf(d.Reason)
	at := ""
	switch {
	case d.FirstSeq > 0 && d.LastSeq > d.FirstSeq:
		at = fmt.Sprintf(", in commits %d to %d", d.FirstSeq, d.LastSeq)
	case d.FirstSeq > 0:
		at = fmt.Sprintf(", at commit %d", d.FirstSeq)
	}
	if d.Block == 0 {
		return c.Means + at
	}
	return fmt.Sprintf("block %d: %s%s", d.Block, c.Means, at)
}

func byBlock(a, b BlockDamage) int { return a.Block - b.Block }

// refusesWork is what new work is told once blocks are damaged (decision 22).
func refusesWork(list []BlockDamage) *fault.Error {
	f := damaged(list)
	f.Message = "the log is damaged, and what is written now would be lost with its repair: " + f.Message
	return f
}

// damaged is the refusal that names every bad block. The files are left as they are.
func damaged(list []BlockDamage) *fault.Error {
	slices.SortFunc(list, byBlock)
	first := list[0]
	c, _ := ClassOf(first.Reason)
	more := ""
	if len(list) > 1 {
		more = fmt.Sprintf("; %d blocks are damaged in all", len(list))
	}
	f := fault.New(fault.LogDamaged, "%s%s", first, more).WithReason(first.Reason).WithNext("%s", c.Repair).With("blocks", list)
	if first.FirstSeq > 0 {
		f = f.With("seq", first.FirstSeq)
	}
	return f
}
