package event

// CarriedPart is a piece of an aggregate's state, brought forward so that the commits it was
// folded from may leave the log. Parts are commits of consecutive versions; the last one
// holds the hash of all and alone makes them count.
type CarriedPart struct {
	// State is the version of the form that Data has once it is put together.
	State int `json:"state"`
	Part  int `json:"part"` // from 1
	Parts int `json:"parts"`
	// Data is base64 of this part of the compressed state.
	Data string `json:"data"`
	// Hash is the hex SHA-256 of the whole compressed state, in the last part only.
	Hash string `json:"hash,omitempty"`
}

// SessionCarried carries a Session's core and tail.
type SessionCarried struct {
	Part CarriedPart `json:"part"`
}

// ProjectCarried carries a Project's registration.
type ProjectCarried struct {
	Part CarriedPart `json:"part"`
}

// AccessCarried carries principals and tokens, or a page of refs.
type AccessCarried struct {
	Part CarriedPart `json:"part"`
}

// RetentionCarried carries the tombstones.
type RetentionCarried struct {
	Part CarriedPart `json:"part"`
}

// Carried gives the part that an event carries, if it is one that does.
func Carried(e Event) (CarriedPart, bool) {
	switch e := e.(type) {
	case SessionCarried:
		return e.Part, true
	case ProjectCarried:
		return e.Part, true
	case AccessCarried:
		return e.Part, true
	case RetentionCarried:
		return e.Part, true
	default: // carries nothing
		return CarriedPart{}, false
	}
}

func (SessionCarried) isEvent()   {}
func (SessionCarried) isSession() {}
func (ProjectCarried) isEvent()   {}
func (AccessCarried) isEvent()    {}
func (RetentionCarried) isEvent() {}
