package event

// WindowID is the keyless, domain-separated hash of what a host says of a conversation
// (WIN-01): 64 lowercase hex. It routes and explains; it never selects or authorises.
type WindowID string

// PeerID addresses a window for one principal (WIN-04).
type PeerID string

// PeerPrefix of a PeerID.
const PeerPrefix = "wc_peer_"

// Valid reports whether p has the form of a peer id.
func (p PeerID) Valid() bool { return minted(string(p), PeerPrefix) }

// Relations of a window to a Session (WIN-20).
const (
	RelationRecording = "recording"
	RelationWork      = "work_on_project"
)

// WindowRelated tells that a window of the principal worked with a Session, after authority
// over it was established.
type WindowRelated struct {
	Window   WindowID   `json:"window"`
	Session  SessionID  `json:"session_id"`
	Project  ProjectRef `json:"project,omitzero"`
	Relation string     `json:"relation"`
}

// PeerDiscovered opens the route from one window of the principal to another.
type PeerDiscovered struct {
	Window WindowID `json:"window"` // that was told
	Peer   PeerID   `json:"peer_id"`
	Other  WindowID `json:"other"` // that the peer id stands for
}

// PeerPosted is a message from one window to another of the same principal. Key and Payload
// are hashes, as of MessagePosted.
type PeerPosted struct {
	Message     MessageID `json:"message_id"`
	From        WindowID  `json:"from"`
	To          WindowID  `json:"to"`
	Text        string    `json:"text"` // redacted, ≤ 4,000 characters
	Priority    Priority  `json:"priority"`
	RequiresAck bool      `json:"requires_ack,omitempty"`
	Key         string    `json:"delivery_key_hash,omitempty"`
	Payload     string    `json:"payload_hash,omitempty"`
}

// PeerProjected tells that messages were put into an answer: a fact for analysis, no receipt
// (WIN-16, WIN-17).
type PeerProjected struct {
	Messages []MessageID `json:"message_ids"`
}

// PeerAcknowledged tells of peer messages whose first ACK was observed.
type PeerAcknowledged struct {
	Messages []MessageID `json:"message_ids"`
}

// WindowCarried carries one principal's windows, routes and messages.
type WindowCarried struct {
	Part CarriedPart `json:"part"`
}

func (WindowRelated) isEvent()    {}
func (PeerDiscovered) isEvent()   {}
func (PeerPosted) isEvent()       {}
func (PeerProjected) isEvent()    {}
func (PeerAcknowledged) isEvent() {}
func (WindowCarried) isEvent()    {}
