package event

// MessageID names one message of a board or between peers.
type MessageID string

// CompletionID names one completion of a todo.
type CompletionID string

// Prefixes of a board's ids.
const (
	MessagePrefix    = "wc_msg_"
	CompletionPrefix = "wc_done_"
)

// NewMessageID mints an id.
func NewMessageID() MessageID { return MessageID(mint(MessagePrefix)) }

// NewCompletionID mints an id.
func NewCompletionID() CompletionID { return CompletionID(mint(CompletionPrefix)) }

// Valid reports whether m has the form of a minted id.
func (m MessageID) Valid() bool { return minted(string(m), MessagePrefix) }

// MessageKind is what a message is for (MSG-01).
type MessageKind string

// Message kinds, a closed set.
const (
	MessageNote     MessageKind = "note"
	MessageProposal MessageKind = "proposal"
	MessageQuestion MessageKind = "question"
	MessageAnswer   MessageKind = "answer"
	MessageDecision MessageKind = "decision"
	MessageRisk     MessageKind = "risk"
	MessageProgress MessageKind = "progress"
	MessageGuidance MessageKind = "guidance"
	MessageTodo     MessageKind = "todo"
)

// MessageKinds lists every kind, in the order shown.
func MessageKinds() []MessageKind {
	return []MessageKind{MessageNote, MessageProposal, MessageQuestion, MessageAnswer, MessageDecision,
		MessageRisk, MessageProgress, MessageGuidance, MessageTodo}
}

// Priority of a message.
type Priority string

// Priorities, a closed set; normal where none is given.
const (
	PriorityLow    Priority = "low"
	PriorityNormal Priority = "normal"
	PriorityHigh   Priority = "high"
)

// MessagePosted puts a message on the Session's board. Key and Payload are hashes of the
// caller's delivery key and of what was posted under it (MSG-27); the key itself is nowhere.
type MessagePosted struct {
	Message     MessageID   `json:"message_id"`
	Kind        MessageKind `json:"kind"`
	Text        string      `json:"text"` // redacted, ≤ 8,000 characters
	Tags        []string    `json:"tags,omitempty"`
	Priority    Priority    `json:"priority"`
	ReplyTo     MessageID   `json:"reply_to,omitempty"`
	Supersedes  MessageID   `json:"supersedes,omitempty"`
	RequiresAck bool        `json:"requires_ack,omitempty"`
	Author      SessionID   `json:"author_session_id,omitempty"` // an authorised recorder, never what a caller says (MSG-41)
	Key         string      `json:"delivery_key_hash,omitempty"`
	Payload     string      `json:"payload_hash,omitempty"`
}

// MessageResolved is the durable processed state of a message (MSG-06).
type MessageResolved struct {
	Message    MessageID `json:"message_id"`
	Resolution string    `json:"resolution,omitempty"` // redacted, ≤ 8,000 characters
}

// MessageCompleted answers a todo and resolves it, one mutation (MSG-37). Key and Payload are
// hashes of the completion key and of the answer under it.
type MessageCompleted struct {
	Todo       MessageID    `json:"todo_id"`
	Answer     MessageID    `json:"answer_id"`
	Completion CompletionID `json:"completion_id"`
	Text       string       `json:"text"` // redacted, ≤ 8,000 characters
	Tags       []string     `json:"tags,omitempty"`
	Priority   Priority     `json:"priority"`
	Author     SessionID    `json:"author_session_id,omitempty"`
	Key        string       `json:"completion_key_hash"`
	Payload    string       `json:"payload_hash"`
}

// MessagesAcknowledged tells of messages whose first ACK was observed, at the commit's time
// (ACK-16). Later echoes leave nothing.
type MessagesAcknowledged struct {
	Messages []MessageID `json:"message_ids"`
}

func (MessagePosted) isEvent()          {}
func (MessagePosted) isSession()        {}
func (MessageResolved) isEvent()        {}
func (MessageResolved) isSession()      {}
func (MessageCompleted) isEvent()       {}
func (MessageCompleted) isSession()     {}
func (MessagesAcknowledged) isEvent()   {}
func (MessagesAcknowledged) isSession() {}
