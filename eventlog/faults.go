package eventlog

import "os"

// Faults lets a test stand at the committer's named points. Each hook may return an error
// (the step fails although it may have happened) or block.
type Faults struct {
	BeforePublish, AfterPublish, AfterAck, AfterSync, AfterApply func(seq uint64) error
	// Fdatasync stands in for the sync of a block file in durability group.
	Fdatasync func(*os.File) error
	// GroupBytes stands in for maxGroup.
	GroupBytes int
	// AfterPurge stands between the steps of a prune; seq is where the log begins then.
	AfterPurge func(seq uint64) error
}
