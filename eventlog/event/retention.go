package event

// SessionRemoved takes a Closed Session out of every read model and leaves its tombstone:
// exactly these members (SES-34). Both fingerprints are from creation (ruling 6).
type SessionRemoved struct {
	Session     SessionID `json:"session"`
	Authority   string    `json:"authority"`
	Principal   string    `json:"principal"`
	Incarnation string    `json:"incarnation"`
	// Ordinal says only which of two tombstones is the older one (SES-35).
	Ordinal uint64 `json:"expiry_ordinal"`
}

// TombstonesRenumbered gives the retained tombstones the ordinals 1, 2, … in their order,
// because the newest left no greater one (SES-35).
type TombstonesRenumbered struct {
	Count uint64 `json:"count"`
}

// TombstonesDropped forgets the oldest tombstones: they have a bound of their own (SES-36).
// From then on these ids answer like ids that never were, and so do their refs (SES-39).
type TombstonesDropped struct {
	Sessions []SessionID `json:"sessions"` // oldest first
}

func (TombstonesDropped) isEvent()    {}
func (SessionRemoved) isEvent()       {}
func (TombstonesRenumbered) isEvent() {}
