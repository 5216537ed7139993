package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Format is the version of the commit envelope (field v).
const Format = 1

// MaxCommitBytes bounds one stored commit body. It is checked before
// anything starts, so that no effect happens whose evidence cannot be stored.
const MaxCommitBytes = 256 << 10

// Actor is who decided: fingerprints, never a raw identity (AUTH-02).
type Actor struct {
	// Authority is the authority-group fingerprint, 64 lowercase hex.
	Authority string `json:"authority"`
	// Principal is the principal fingerprint, 64 lowercase hex.
	Principal string `json:"principal"`
	// Credential is the kind of credential presented: owner, system, …
	Credential string `json:"credential"`
}

// Commit is one decision and the unit of the log: all its events are stored or none.
type Commit struct {
	Format    int
	ID        CommandID
	Aggregate Aggregate
	// Version is contiguous within the aggregate, from 1.
	Version uint64
	// Prev is the hash of the aggregate's commit before this one, empty at version 1.
	Prev string
	// At is the server's time, UTC, whole milliseconds, set once.
	At    time.Time
	Actor Actor
	// Invocation is shared by all commits of one kernel request; empty where there is none.
	Invocation InvocationID
	// Server is the server instance that wrote the commit.
	Server InstanceID
	Events []Event
}

type storedEvent struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

type storedCommit struct {
	V      int           `json:"v"`
	ID     CommandID     `json:"id"`
	Agg    string        `json:"agg"`
	Ver    uint64        `json:"ver"`
	Prev   string        `json:"prev"`
	At     string        `json:"at"`
	Actor  Actor         `json:"actor"`
	Inv    InvocationID  `json:"inv,omitempty"`
	Server InstanceID    `json:"server"`
	Events []storedEvent `json:"events"`
}

// TimeForm is RFC 3339 UTC with milliseconds, everywhere a time is stored or shown.
const TimeForm = "2006-01-02T15:04:05.000Z"

// FormatTime renders t in TimeForm.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeForm) }

// Encode renders the stored body. The hash of a commit is taken over exactly these bytes.
func (c Commit) Encode() ([]byte, error) {
	names := make([]string, len(c.Events))
	for i, e := range c.Events {
		name, ok := NameOf(e)
		if !ok {
			return nil, fmt.Errorf("event %T has no stored name", e)
		}
		names[i] = name
	}
	return appendCommit(make([]byte, 0, 512+512*len(names)), c, names), nil
}

// Decode reads a stored body. An unknown event type is an error: the log was written by a
// newer program, and a fold that skipped it would lie.
func Decode(body []byte) (Commit, error) {
	if c, ok := readCommit(body); ok {
		return c, nil
	}
	return decodeAny(body)
}

// decodeAny reads a body that need not be in the form Encode writes.
func decodeAny(body []byte) (Commit, error) {
	var s storedCommit
	if err := json.Unmarshal(body, &s); err != nil {
		return Commit{}, fmt.Errorf("commit: %w", err)
	}
	if s.V != Format {
		return Commit{}, fmt.Errorf("commit format %d, this program reads %d", s.V, Format)
	}
	agg, ok := ParseAggregate(s.Agg)
	if !ok {
		return Commit{}, fmt.Errorf("commit of a malformed aggregate")
	}
	at, ok := parseTime(s.At)
	if !ok {
		return Commit{}, fmt.Errorf("commit of a malformed time")
	}
	c := Commit{Format: s.V, ID: s.ID, Aggregate: agg, Version: s.Ver, Prev: s.Prev, At: at, Actor: s.Actor,
		Invocation: s.Inv, Server: s.Server, Events: make([]Event, 0, len(s.Events))}
	for _, se := range s.Events {
		e, err := decodeEvent(se.Type, se.Data)
		if err != nil {
			return Commit{}, err
		}
		c.Events = append(c.Events, e)
	}
	return c, nil
}

// Hash is the lowercase hex SHA-256 of a stored body: the next commit's Prev.
func Hash(body []byte) string {
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:])
}

// TailEventID is stable over rebuilds: evt_ and 32 hex of a hash (ruling 17).
func TailEventID(a Aggregate, version uint64, index int) EventID {
	h := sha256.Sum256(fmt.Appendf(nil, "webcodex.event.v1\x00%s\x00%d\x00%d", a, version, index))
	return EventID(EventPrefix + hex.EncodeToString(h[:16]))
}
