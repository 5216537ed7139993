// Package wire holds the messages between server and Runner: one Go type each, shared by
// both sides, JSON on core NATS subjects wc.run.<client_id>.<verb>. Nothing here is ever
// stored by the server; command text lives only in these messages (faults.md 3).
package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Protocol is the version both sides must share.
const Protocol = 1

// MaxMessage bounds one message; it is the bus's payload limit.
const MaxMessage = 1 << 20

// MaxCommandWire bounds an authored command after quoting for a shell; the Runner checks it
// itself (EXE-19). Wire headroom never raises the authored ceiling (EXE-20).
const MaxCommandWire = 64 << 10

// Verb is the last token of a subject.
type Verb string

// Verbs the Runner sends (all requests) and verbs the server sends (all requests).
const (
	VerbHello  Verb = "hello"  // Runner → server: Hello → HelloReply, at connect and every HelloEvery
	VerbClaim  Verb = "claim"  // Runner → server: Claim → ClaimReply
	VerbStart  Verb = "start"  // Runner → server, published: Started
	VerbResult Verb = "result" // Runner → server: Result → Ack, repeated until acknowledged

	VerbOffer  Verb = "offer"  // server → Runner: Offer → OfferReply
	VerbQuery  Verb = "query"  // server → Runner: Query → QueryReply
	VerbRead   Verb = "read"   // server → Runner: Read → ReadReply; no effect, no journal
	VerbCancel Verb = "cancel" // server → Runner: Cancel → Ack
)

// Subject is wc.run.<client>.<verb>.
func Subject(c event.ClientID, v Verb) string { return "wc.run." + string(c) + "." + string(v) }

// Op names a typed operation; the table of ops and their types is in ops.go.
type Op string

// Project is a Runner's Project as announced in Hello.
type Project struct {
	ID   event.ProjectID `json:"id"`
	Name string          `json:"name"` // folder name for people
	// Title is what a caller or the owner called it; empty: nobody did.
	Title string `json:"title,omitempty"`
	Root  string `json:"root"` // root fingerprint
	Git   bool   `json:"git"`
}

// Shown is what people see.
func (p Project) Shown() string {
	if p.Title != "" {
		return p.Title
	}
	return p.Name
}

// Hello announces a Runner life.
type Hello struct {
	Protocol     int              `json:"protocol"`
	Client       event.ClientID   `json:"client"`
	Instance     event.InstanceID `json:"instance"`
	StartedAt    string           `json:"started_at"`
	Build        string           `json:"build"`
	OS           string           `json:"os"`
	Arch         string           `json:"arch"`
	Capabilities []string         `json:"capabilities"`
	Projects     []Project        `json:"projects"`
	Generation   string           `json:"generation"` // of the journal
	Boot         string           `json:"boot"`
	Jobs         []JobSummary     `json:"jobs"` // every execution not yet settled
	// Trouble is what the Runner's owner should look at (TroubleProjectsFile); empty: nothing.
	Trouble string `json:"trouble,omitempty"`
	// Slots tells how busy the Runner is with Jobs; absent: it does not say.
	Slots *JobSlots `json:"slots,omitempty"`
	// Listening tells that the Runner hears requests: it does so only after it was accepted.
	Listening bool `json:"listening"`
}

// JobSummary is one line of the job inventory.
type JobSummary struct {
	ID    event.ExecutionID `json:"id"`
	State JournalState      `json:"state"`
}

// HelloReply accepts or refuses a Runner life; a second live instance of a client is refused.
type HelloReply struct {
	OK     bool             `json:"ok"`
	Reason string           `json:"reason,omitempty"`
	Server event.InstanceID `json:"server"`
	// Text says the reason in words; Protocol and Build are the server's.
	Text     string `json:"text,omitempty"`
	Protocol int    `json:"protocol,omitempty"`
	Build    string `json:"build,omitempty"`
}

// Reasons of a refused hello.
const (
	RefusedProtocol  = "protocol"
	RefusedSecond    = "second_instance"
	RefusedRevoked   = "revoked"
	RefusedMalformed = "malformed"
)

// Fence is what must still hold at the Runner for a request to be served (AUTH-19).
type Fence struct {
	Client   event.ClientID   `json:"client"`
	Instance event.InstanceID `json:"instance"`
	Project  event.ProjectID  `json:"project"`
	Root     string           `json:"root"`
}

// Offer proposes an execution or another effect. It starts nothing by itself.
type Offer struct {
	ID     event.ExecutionID `json:"id"`
	Digest string            `json:"digest"`
	Fence  Fence             `json:"fence"`
	Op     Op                `json:"op"`
	Body   json.RawMessage   `json:"body"` // the op's input type
	Bounds Bounds            `json:"bounds"`
	// Key stands for the caller's idempotency key and Payload for what the key is given for; both
	// keyed digests, empty where no key was given. Neither depends on the id or the life.
	Key     string `json:"key,omitempty"`
	Payload string `json:"payload,omitempty"`
}

// Bounds of one execution.
type Bounds struct {
	TimeoutMS int64 `json:"timeout_ms"` // 1 s to 1 h for processes; it counts from the start
	// Job: it takes one of the Runner's slots and waits for one, however long, before it claims.
	Job bool `json:"job,omitempty"`
}

// OfferReply says that the offer was taken (the claim follows) or why not.
type OfferReply struct {
	Accepted bool         `json:"accepted"`
	Known    *Result      `json:"known,omitempty"` // the id is in the journal already; never started again
	State    JournalState `json:"state,omitempty"`
	Fault    *fault.Error `json:"fault,omitempty"`
	// First is the execution that the offer's key was given for before: this offer starts nothing.
	First event.ExecutionID `json:"first,omitempty"`
}

// Claim asks for the grant. Sent once the journal says accepted.
type Claim struct {
	ID         event.ExecutionID `json:"id"`
	Digest     string            `json:"digest"`
	Instance   event.InstanceID  `json:"instance"`
	Generation string            `json:"generation"`
	Boot       string            `json:"boot"`
	// Nonce makes each claim another one: its signed answer fits no other.
	Nonce string `json:"nonce,omitempty"`
}

// NoLease is the Reason of a claim's refusal that says nothing about the id: the Runner does not
// hold its lease at this moment.
const NoLease = "no_lease"

// ClaimReply grants at most once per id. RemainingMS counts from receipt, on the boot clock.
type ClaimReply struct {
	Granted     bool   `json:"granted"`
	RemainingMS int64  `json:"remaining_ms"`
	Reason      string `json:"reason,omitempty"`
}

// Started tells that the process runs. A hint only.
type Started struct {
	ID event.ExecutionID `json:"id"`
}

// JournalState is the Runner journal's word about one id.
type JournalState string

// Journal states (faults.md 3). An id moves only forward.
const (
	JRefused     JournalState = "refused"
	JAccepted    JournalState = "accepted"
	JNever       JournalState = "never"
	JStarting    JournalState = "starting"
	JStartFailed JournalState = "start_failed"
	JRunning     JournalState = "running"
	JTerminal    JournalState = "terminal"
	JSettled     JournalState = "settled"
	JLost        JournalState = "lost"
	JAbsent      JournalState = "absent"
)

// Result is the end of an execution.
type Result struct {
	ID         event.ExecutionID `json:"id"`
	Digest     string            `json:"digest"`
	Instance   event.InstanceID  `json:"instance"`
	State      JournalState      `json:"state"` // terminal, start_failed, never, refused, lost
	Fault      *fault.Error      `json:"fault,omitempty"`
	Process    *ProcessOutcome   `json:"process,omitempty"` // process ops
	Body       json.RawMessage   `json:"body,omitempty"`    // other effects: the op's output type
	DurationMS int64             `json:"duration_ms"`
	// EndedAt is the Runner's wall clock at the end, in event.TimeForm; empty where it saw none.
	EndedAt string `json:"ended_at,omitempty"`
}

// Ack acknowledges a Result or Cancel.
type Ack struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// Query asks what the journal knows about an id. Where it is absent the Runner writes never
// first, so that a late offer cannot start it.
type Query struct {
	ID event.ExecutionID `json:"id"`
}

// QueryReply answers from the journal.
type QueryReply struct {
	State      JournalState `json:"state"`
	Generation string       `json:"generation"`
	Boot       string       `json:"boot"`
	Result     *Result      `json:"result,omitempty"`
}

// Cancel ends an execution (stop_job, a cancelled call). Ending one that ended is no error.
type Cancel struct {
	ID     event.ExecutionID `json:"id"`
	Reason string            `json:"reason"` // cancelled, stopped, or CancelAbandoned
}

// CancelAbandoned drops what has not started, because no server will grant it any more; what has
// started goes on.
const CancelAbandoned = "abandoned"

// Read asks for a pure read.
type Read struct {
	// ID lets a Cancel end the read when nobody waits for it any more; it is in no journal.
	ID    event.ExecutionID `json:"id,omitempty"`
	Fence Fence             `json:"fence"`
	Op    Op                `json:"op"`
	Body  json.RawMessage   `json:"body"`
	// TimeoutMS bounds the Runner's own work.
	TimeoutMS int64 `json:"timeout_ms"`
}

// ReadReply is the op's output type or a fault.
type ReadReply struct {
	Fault *fault.Error    `json:"fault,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// Digest binds id, fence, op and body; keyed, so that a stored digest tells nothing about
// the command text (faults.md 4, Evidence).
func Digest(key []byte, o Offer) string {
	h := hmac.New(sha256.New, key)
	f, _ := json.Marshal(struct {
		ID    event.ExecutionID
		Fence Fence
		Op    Op
		B     Bounds
		Key   string `json:",omitempty"`
		Load  string `json:",omitempty"`
	}{o.ID, o.Fence, o.Op, o.Bounds, o.Key, o.Payload})
	h.Write(f)
	h.Write([]byte{0})
	h.Write(o.Body)
	return hex.EncodeToString(h.Sum(nil))
}
