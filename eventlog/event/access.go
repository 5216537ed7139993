package event

// RefKind tells the two domains of refs apart; one never doubles as the other (SES-19).
type RefKind string

// Kinds of refs.
const (
	RefSession RefKind = "session" // ~sN
	RefProject RefKind = "project" // ~pN
)

// RefReserved takes a number out of a principal's counter before the Session that will bind
// it exists; a number never bound is a harmless gap, and none is given twice (SES-11).
type RefReserved struct {
	Principal string  `json:"principal"`
	Kind      RefKind `json:"kind"`
	Number    uint64  `json:"number"`
}

// RefBound reserves a number and pins it at once: for refs that reads hand out (ruling 13).
type RefBound struct {
	Principal string     `json:"principal"`
	Kind      RefKind    `json:"kind"`
	Number    uint64     `json:"number"`
	Session   SessionID  `json:"session,omitempty"`
	Project   ProjectRef `json:"project,omitzero"`
	// Pin is the incarnation fingerprint of the Session, or the Project's root fingerprint.
	Pin string `json:"pin"`
}

// SessionRefBound pins a reserved number to the Session whose commit it stands in.
type SessionRefBound struct {
	Principal string `json:"principal"`
	Number    uint64 `json:"number"`
}

func (RefReserved) isEvent()       {}
func (RefBound) isEvent()          {}
func (SessionRefBound) isEvent()   {}
func (SessionRefBound) isSession() {}
