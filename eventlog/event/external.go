package event

// ObservationRecorded is a report of an external adapter about one Session, in an aggregate
// of its own: it proves nothing, is no native event and moves nothing of the Session (EXT-03).
type ObservationRecorded struct {
	Project  ProjectRef `json:"project"`
	Session  SessionID  `json:"session_id"`
	Adapter  string     `json:"adapter_id"` // 64 hex
	Event    string     `json:"event_id"`   // 64 hex
	Tool     string     `json:"tool"`
	Status   string     `json:"status"` // succeeded, failed, unknown
	ExitCode *int       `json:"exit_code,omitempty"`
	Payload  string     `json:"payload_hash"`
}

// ExternalCarried carries the reports about one Session.
type ExternalCarried struct {
	Part CarriedPart `json:"part"`
}

func (ObservationRecorded) isEvent() {}
func (ExternalCarried) isEvent()     {}
