package event

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
)

// Ids are opaque. All but ClientID and ProjectID are a fixed prefix and 32 lowercase hex
// digits (SES-02); the server mints them, a caller never does.
type (
	// SessionID names one Workflow Session.
	SessionID string
	// CallID is shared by the start and the finish of one recorded call (EVT-07).
	CallID string
	// InvocationID correlates the recorder and the business pair of one kernel request (EVT-08).
	InvocationID string
	// ExecutionID names one execution on a Runner; a Job's id is its execution's id.
	ExecutionID string
	// CommandID names one decision; it recognises an append whose acknowledgement was lost.
	CommandID string
	// InstanceID names one life of a server or Runner process.
	InstanceID string
	// ClientID names a Runner; 1 to 64 of [a-z0-9_-].
	ClientID string
	// ProjectID names a Project within its Runner.
	ProjectID string
	// EventID names one tail event: a hash of aggregate, version and index in the commit.
	EventID string
)

// Prefixes of minted ids.
const (
	SessionPrefix    = "wc_sess_"
	CallPrefix       = "wc_call_"
	InvocationPrefix = "wc_inv_"
	ExecutionPrefix  = "wc_exec_"
	CommandPrefix    = "wc_cmd_"
	InstancePrefix   = "wc_inst_"
	EventPrefix      = "evt_"
)

func mint(prefix string) string {
	var b [16]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// NewSessionID mints an id. Only edges mint; decisions take ids as arguments.
func NewSessionID() SessionID { return SessionID(mint(SessionPrefix)) }

// NewCallID mints an id for one recorded call.
func NewCallID() CallID { return CallID(mint(CallPrefix)) }

// NewInvocationID mints the correlation id of one kernel request.
func NewInvocationID() InvocationID { return InvocationID(mint(InvocationPrefix)) }

// NewExecutionID mints an id for one execution.
func NewExecutionID() ExecutionID { return ExecutionID(mint(ExecutionPrefix)) }

// NewCommandID mints an id for one decision.
func NewCommandID() CommandID { return CommandID(mint(CommandPrefix)) }

// NewInstanceID mints an id for one process life.
func NewInstanceID() InstanceID { return InstanceID(mint(InstancePrefix)) }

// NewNonce mints the 32 hex digits that tell two incarnations of one id apart (SES-08).
func NewNonce() string { return mint("") }

// Lengths of subject tokens, in bytes.
const (
	maxClient    = 64
	maxToken     = 128
	maxAggregate = 256
)

// minted reports whether s is prefix and 32 lowercase hex digits.
func minted(s, prefix string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) != 32 {
		return false
	}
	for i := range len(rest) {
		if c := rest[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// literal reports whether s may stand as one literal token of a subject. These checks are on
// the path of every commit read, so they are loops and not regular expressions.
func literal(s string, most int, upper bool) bool {
	if len(s) == 0 || len(s) > most {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		case upper && c >= 'A' && c <= 'Z':
		default:
			return false
		}
	}
	return true
}

// Valid reports whether s has the canonical form (SES-02).
func (s SessionID) Valid() bool { return minted(string(s), SessionPrefix) }

// Valid reports whether c may stand in a subject.
func (c ClientID) Valid() bool { return literal(string(c), maxClient, false) }

// Valid reports whether e has the form of a minted execution id.
func (e ExecutionID) Valid() bool { return minted(string(e), ExecutionPrefix) }

// Domain is the kind of an aggregate and the fourth token of its subject.
type Domain string

// Domains of the log. The list is append-only: subjects outlive the program.
const (
	DomainSession Domain = "session"
	DomainProject Domain = "project"
	DomainLog     Domain = "log"
	// DomainAccess holds principals, tokens (hashes) and ref numbers.
	DomainAccess Domain = "access"
	// DomainRetention orders the removal of Closed Sessions.
	DomainRetention Domain = "retention"
	// DomainExternal holds what adapters report about a Session.
	DomainExternal Domain = "external"
	// DomainWindow holds one principal's windows, routes and peer messages.
	DomainWindow Domain = "window"
)

// Aggregate names the unit of consistency: one chain of commits on one literal subject.
type Aggregate struct {
	Domain Domain
	ID     string
}

// SessionAggregate is the aggregate of one Workflow Session.
func SessionAggregate(id SessionID) Aggregate { return Aggregate{DomainSession, string(id)} }

// ProjectAggregate is the aggregate of one Project's registration.
func ProjectAggregate(r ProjectRef) Aggregate {
	return Aggregate{DomainProject, string(r.Client) + "--" + string(r.Project)}
}

// LogAggregate holds the facts about the log itself: its epoch, later its pruning.
func LogAggregate() Aggregate { return Aggregate{DomainLog, "main"} }

// AccessAggregate holds the principals and their tokens.
func AccessAggregate() Aggregate { return Aggregate{DomainAccess, "main"} }

// RunnersAggregate holds the credentials of Runners in other processes.
func RunnersAggregate() Aggregate { return Aggregate{DomainAccess, "runners"} }

// RefsPage is how many ref numbers of one kind one aggregate holds: so its carried state
// stays within one commit.
const RefsPage = 1000

// RefsAggregate is the page of a principal's refs that a number (from 1) falls into.
func RefsAggregate(principal string, kind RefKind, number uint64) Aggregate {
	page := (number - 1) / RefsPage
	return Aggregate{DomainAccess, "refs-" + string(kind) + "-" + principal[:min(32, len(principal))] + "-" + strconv.FormatUint(page, 10)}
}

// RetentionAggregate assigns the order in which Closed Sessions were removed (SES-34).
func RetentionAggregate() Aggregate { return Aggregate{DomainRetention, "main"} }

// ExternalAggregate holds the reports about one Session.
func ExternalAggregate(id SessionID) Aggregate { return Aggregate{DomainExternal, string(id)} }

// WindowAggregate holds the windows of one principal, named by its fingerprint.
func WindowAggregate(principal string) Aggregate {
	return Aggregate{DomainWindow, principal[:min(32, len(principal))]}
}

// String is the stored form, "domain/id".
func (a Aggregate) String() string { return string(a.Domain) + "/" + a.ID }

// ParseAggregate reads the stored form back.
func ParseAggregate(s string) (Aggregate, bool) {
	d, id, ok := strings.Cut(s, "/")
	a := Aggregate{Domain(d), id}
	return a, ok && a.Valid()
}

// Valid reports whether both parts may stand as literal subject tokens.
func (a Aggregate) Valid() bool {
	return literal(string(a.Domain), maxToken, true) && literal(a.ID, maxAggregate, true)
}

// ProjectRef names a Project by the Runner that owns it.
type ProjectRef struct {
	Client  ClientID  `json:"client"`
	Project ProjectID `json:"project"`
}

// String is the form callers use: agent:<client_id>:<project_id>.
func (r ProjectRef) String() string { return "agent:" + string(r.Client) + ":" + string(r.Project) }

// Zero reports whether no Project is named.
func (r ProjectRef) Zero() bool { return r == ProjectRef{} }

// ParseProject reads agent:<client_id>:<project_id>.
func ParseProject(s string) (ProjectRef, bool) {
	p := strings.Split(s, ":")
	if len(p) != 3 || p[0] != "agent" || !ClientID(p[1]).Valid() || !literal(p[2], maxToken, true) {
		return ProjectRef{}, false
	}
	return ProjectRef{ClientID(p[1]), ProjectID(p[2])}, true
}
