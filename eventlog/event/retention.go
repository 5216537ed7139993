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

// TombstonesDropped forgets the oldest Count tombstones: they have a bound of their own
// (SES-36), and from then on their ids answer like ids that never were (SES-39).
type TombstonesDropped struct {
	Count uint64 `json:"count"`
}

func (TombstonesDropped) isEvent()    {}
func (SessionRemoved) isEvent()       {}
func (TombstonesRenumbered) isEvent() {}
