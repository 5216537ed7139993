// Package fault holds the one error type that crosses our edges and the closed list of
// error kinds. A kind is stable: hosts branch on it. The sentence is for a model or a person
// and never holds a secret, an absolute path or a caller's free text.
package fault

import (
	"errors"
	"fmt"
)

// Kind is a stable error kind (error_kind on the wire). The list is append-only.
type Kind string

// Error kinds (shapes.md 3, requirements).
const (
	InvalidArguments       Kind = "invalid_arguments"
	InvalidInstruction     Kind = "invalid_coding_instruction"
	UnknownTool            Kind = "unknown_tool"
	UnknownSessionID       Kind = "unknown_session_id"
	UnknownSessionRef      Kind = "unknown_session_ref"
	UnknownProject         Kind = "unknown_project"
	UnknownProjectRef      Kind = "unknown_project_ref"
	UnknownClientID        Kind = "unknown_client_id" // no Runner of that name
	UnknownJob             Kind = "unknown_job"
	SessionExpired         Kind = "session_retention_expired"
	SessionClosed          Kind = "session_closed"
	SessionProjectMismatch Kind = "session_project_mismatch"
	SessionAuthorityDenied Kind = "session_authority_denied"
	AuthorityUnavailable   Kind = "session_authority_identity_unavailable"
	OwnerUnavailable       Kind = "session_owner_identity_unavailable"
	InvalidContext         Kind = "invalid_execution_context"
	ContextNeedsProject    Kind = "session_execution_context_requires_project"
	UpgradeDenied          Kind = "session_capability_upgrade_denied"
	SessionGuardDenied     Kind = "session_guard_denied" // a guard of the Session forbids the tool
	InsufficientScope      Kind = "insufficient_scope"
	RunnerUnavailable      Kind = "runner_unavailable"
	RunnerRefused          Kind = "runner_refused" // the Runner's own policy or fence said no
	InvalidPath            Kind = "invalid_path"
	EditConflict           Kind = "edit_conflict"
	TransactionFailed      Kind = "transaction_failed"
	CommandSpawnFailed     Kind = "command_spawn_failed"
	ExecutionConflict      Kind = "id_conflict"
	OutcomeUnknown         Kind = "outcome_unknown"
	Cancelled              Kind = "cancelled"
	OutputBudgetExceeded   Kind = "output_budget_exceeded"
	GitUnavailable         Kind = "git_unavailable" // no repository, no git, refused repository
	GitFailed              Kind = "git_failed"
	InvalidMessage         Kind = "invalid_session_message"
	UnknownMessage         Kind = "unknown_message_id"
	UnknownPeer            Kind = "unknown_peer"
	NotTodo                Kind = "session_message_not_todo"
	AlreadyCompleted       Kind = "already_completed"
	InvalidFence           Kind = "invalid_assignment_fence"
	FenceStale             Kind = "assignment_fence_stale"
	IdempotencyConflict    Kind = "idempotency_conflict" // the key stands for something else
	InvalidObservation     Kind = "invalid_observation_token"
	CompletionUncertain    Kind = "completion_persistence_uncertain" // the same key tells how it ended
	StorageFull            Kind = "storage_full"
	PersistenceUncertain   Kind = "persistence_uncertain"
	LogDamaged             Kind = "log_damaged"
	Conflict               Kind = "conflict" // too many writers at once; nothing was written
	TooManyCalls           Kind = "too_many_calls"
	CapacityReached        Kind = "capacity_reached" // a record is full; nothing leaves it for more
	Unavailable            Kind = "unavailable"      // a plane that does not exist here
	Timeout                Kind = "timeout"
	ShuttingDown           Kind = "shutting_down"
	Internal               Kind = "internal"
	// WorktreeRootUnavailable: the owner's policy leaves no place beside the source (WTR-10).
	WorktreeRootUnavailable Kind = "managed_worktree_root_unavailable"
	CapabilityUnavailable   Kind = "agent_capability_unavailable" // the Runner cannot do that at all
	EnrolmentInvalid        Kind = "enrolment_code_invalid"       // none, a part of one, forged, or of another server
	EnrolmentExpired        Kind = "enrolment_code_expired"
	EnrolmentSpent          Kind = "enrolment_code_spent" // a Runner was enrolled with it
	EnrolmentRevoked        Kind = "enrolment_code_revoked"
	// Of language servers.
	LSPServerUnavailable     Kind = "lsp_server_unavailable" // none is installed, or it does not start
	LSPServerFailed          Kind = "lsp_server_failed"      // it ended
	LSPRequestTimeout        Kind = "lsp_request_timeout"
	LSPProtocolError         Kind = "lsp_protocol_error"
	UnsupportedLanguage      Kind = "unsupported_language"
	DocumentTooLarge         Kind = "document_too_large"
	InvalidPosition          Kind = "invalid_position"
	CallHierarchyUnsupported Kind = "call_hierarchy_unsupported"
	SSHResourceNotFound      Kind = "ssh_resource_not_found" // not in the settings of the Runner
	SSHSessionRequired       Kind = "ssh_session_required"
	SSHConnectionFailed      Kind = "ssh_connection_failed" // nothing was started; the reason says why
	SSHTransportFailed       Kind = "ssh_transport_failed"  // after the command was sent: its outcome is unknown
)

// Recovery says what a caller may do next (recovery_kind on the wire).
type Recovery string

// Recoveries.
const (
	RetrySame    Recovery = "retry_same"
	ReRead       Recovery = "re_read"
	FixArguments Recovery = "fix_arguments"
	None         Recovery = "none"
)

// Error is a refusal or a failure that may be shown. It travels as JSON between server and Runner.
type Error struct {
	Kind           Kind     `json:"error_kind"`
	Message        string   `json:"message"`                 // one sentence
	Next           string   `json:"next,omitempty"`          // one step
	Recovery       Recovery `json:"recovery_kind,omitempty"` // default by kind
	Field          string   `json:"field,omitempty"`         // argument at fault
	Reason         string   `json:"reason_code,omitempty"`
	FailureKind    string   `json:"failure_kind,omitempty"`
	StateChanged   bool     `json:"state_changed"`
	CommandStarted bool     `json:"command_started"`
	// ExecutionState is an event.ExecutionState; empty where no execution is meant.
	ExecutionState string `json:"execution_state,omitempty"`
	// Details are further members of the result's output, e.g. "conflicts". JSON-encodable.
	Details map[string]any `json:"details,omitempty"`
	cause   error
}

// Error is for logs; callers see Message.
func (e *Error) Error() string { return string(e.Kind) + ": " + e.Message }

// Unwrap gives the hidden cause; it is logged and never shown.
func (e *Error) Unwrap() error { return e.cause }

// New makes a refusal with the kind's default recovery.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...), Recovery: defaultRecovery(k)}
}

// Wrap is New with a cause for the log.
func Wrap(cause error, k Kind, format string, args ...any) *Error {
	e := New(k, format, args...)
	e.cause = cause
	return e
}

// WithField names the argument at fault.
func (e *Error) WithField(f string) *Error { e.Field = f; return e }

// WithReason sets the reason code.
func (e *Error) WithReason(r string) *Error { e.Reason = r; return e }

// WithNext sets the one step to take next.
func (e *Error) WithNext(format string, args ...any) *Error {
	e.Next = fmt.Sprintf(format, args...)
	return e
}

// With adds one output member.
func (e *Error) With(name string, v any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[name] = v
	return e
}

// As finds our error in a chain; anything else is Internal with the details kept for the log.
func As(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Wrap(err, Internal, "the server failed inside; the details are in its log")
}

// KindOf is the kind of an error, Internal for one that is not ours, empty for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return As(err).Kind
}

func defaultRecovery(k Kind) Recovery {
	switch k {
	case InvalidArguments, InvalidInstruction, InvalidContext, UnknownTool, UnknownSessionID, UnknownSessionRef, UnknownProject,
		UnknownProjectRef, UnknownClientID, UnknownJob, SessionProjectMismatch, InvalidPath, CommandSpawnFailed, InvalidMessage, UnknownMessage, UnknownPeer, NotTodo,
		IdempotencyConflict, InvalidObservation, InvalidFence, SSHResourceNotFound, SSHSessionRequired, InvalidPosition, UnsupportedLanguage:
		return FixArguments
	case EditConflict, AlreadyCompleted, FenceStale:
		return ReRead
	case CompletionUncertain, RunnerUnavailable, Conflict, TooManyCalls, ShuttingDown, Timeout, LSPRequestTimeout, LSPServerFailed:
		return RetrySame
	default:
		return None
	}
}
