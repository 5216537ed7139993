package event

// ProjectRegistered records which Runner owns a Project; the path stays on the Runner.
type ProjectRegistered struct {
	Project ProjectRef `json:"project"`
	Name    string     `json:"name"` // folder name, ≤ 120 characters
	Root    string     `json:"root"` // root fingerprint
}

// ProjectUnregistered records that a caller unregistered a Project: its Runner serves it no longer.
// Its Sessions are kept, and it may be registered again.
type ProjectUnregistered struct {
	Project ProjectRef `json:"project"`
}

// LogCreated is the first commit of a log.
type LogCreated struct {
	// Epoch is random; tokens carry it, so that those of a lost history are recognised.
	Epoch string `json:"epoch"`
}

// LogTailLost records that an unclean stop in process durability cut the log.
type LogTailLost struct {
	Epoch   string `json:"epoch"`
	LastSeq uint64 `json:"last_seq"` // the newest sequence that survived
}

// LogPruned announces that everything before FirstSeq leaves the log. It is committed and
// synced before the prefix goes, so a log that begins later than the newest one is damaged.
type LogPruned struct {
	FirstSeq uint64 `json:"first_seq"`
	// Epoch is repeated, since the commit that named it may be in the prefix.
	Epoch  string `json:"epoch"`
	Reason string `json:"reason"` // age, bytes, tail or operator
}

// LogRestored begins another history: the commits up to LastSeq came from a backup, and the
// log they were copied from may have gone on without this one.
type LogRestored struct {
	Epoch   string `json:"epoch"`    // of what follows; tokens of before answer history_lost
	From    string `json:"from"`     // epoch of the backup
	LastSeq uint64 `json:"last_seq"` // the backup's newest commit
}

// LogFilled means nothing. It takes up what is left of the newest block, so that what lies in
// that block can leave with the prefix: nothing else ends a block before it is full.
type LogFilled struct {
	Fill string `json:"fill"` // zeros
}

// LogClockConfirmed says that an operator looked at the server's clock and found it right, so
// that time may decide again what leaves the log.
type LogClockConfirmed struct{}

func (ProjectUnregistered) isEvent() {}
func (LogFilled) isEvent()           {}
func (LogClockConfirmed) isEvent()   {}
func (LogRestored) isEvent()         {}
func (LogPruned) isEvent()           {}
func (ProjectRegistered) isEvent()   {}
func (LogCreated) isEvent()          {}
func (LogTailLost) isEvent()         {}
