package main

import (
	"fmt"

	"webcodex/eventlog"
)

// judgeEvidence tells of the block ledger and the last scrub.
func judgeEvidence(e eventlog.EvidenceStatus) []check {
	ledger := check{"ledger", statusOK, fmt.Sprintf("%d sealed blocks are in the block ledger", e.Blocks), ""}
	if class, bad := eventlog.ClassOf(e.Ledger); bad {
		ledger.Status, ledger.Detail, ledger.Fix = statusWarn, "damage "+class.Reason+": "+class.Means, class.Repair
	} else if e.Ledger == eventlog.LedgerIncomplete {
		ledger.Detail += "; older ones enter it once every commit's chain was followed"
	}
	scrub := check{"scrub", statusOK, "no pass over the sealed blocks has ended yet", ""}
	if !e.Scrub.At.IsZero() {
		scrub.Detail = fmt.Sprintf("%d blocks (%s) were read again at %s", e.Scrub.Blocks, size(uint64(max(0, e.Scrub.Bytes))), e.Scrub.At.Format("2006-01-02 15:04"))
	}
	out := []check{ledger, scrub}
	for _, d := range e.Damaged {
		class, _ := eventlog.ClassOf(d.Reason)
		out = append(out, check{"block", statusFail, "damage " + d.Reason + ", " + d.String(), class.Repair})
	}
	return out
}
