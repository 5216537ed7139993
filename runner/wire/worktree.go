package wire

import (
	"regexp"
)

// OpCreateWorktree makes a managed worktree of the fenced Project and serves it as a Project of
// its own, at most once an Operation (WTR-02..07, WTR-16). OpObserveWorktree looks afresh at a
// managed worktree and at where it came from, and makes none (WTR-13).
const (
	OpCreateWorktree  Op = "create_worktree"
	OpObserveWorktree Op = "observe_worktree"
)

// MaxBaseRef bounds a revision, in bytes.
const MaxBaseRef = 256

// CreateWorktreeIn says what the worktree is of. Where it lies is the Runner's own choice.
type CreateWorktreeIn struct {
	// Operation is 32 lowercase hex digits: another request with the same one is the same request.
	Operation string `json:"operation"`
	BaseRef   string `json:"base_ref,omitempty"` // empty: HEAD
}

// CreateWorktreeOut is the Project that was made, served by the time this is told.
type CreateWorktreeOut struct {
	Project    Project `json:"project"`
	BaseCommit string  `json:"base_commit"`
	// Created is false where the operation had made it before.
	Created bool `json:"created"`
	// FiltersDisabled: content filters are configured, and files under one (Git LFS) are there as
	// they are stored.
	FiltersDisabled bool `json:"filters_disabled,omitempty"`
}

// ObserveWorktreeIn asks about the fenced Project; a BaseRef must still be the base commit.
type ObserveWorktreeIn struct {
	BaseRef string `json:"base_ref,omitempty"`
}

// ObserveWorktreeOut tells whether it is a managed worktree, and of which commit it was made.
type ObserveWorktreeOut struct {
	Managed    bool   `json:"managed"`
	BaseCommit string `json:"base_commit,omitempty"`
}

var commitForm = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// ValidCommit reports whether a Runner's word is a full commit id.
func ValidCommit(id string) bool { return commitForm.MatchString(id) }

var operationForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Check says what is wrong with the request by itself: invalid_arguments with a field.
func (in CreateWorktreeIn) Check() error {
	if !operationForm.MatchString(in.Operation) {
		return badArgument("operation", "an operation id is 32 hex digits")
	}
	return CheckBaseRef(in.BaseRef)
}

// CheckBaseRef says what is wrong with the text of a revision; the empty one is HEAD.
func CheckBaseRef(ref string) error {
	if err := checkText("base_ref", ref, MaxBaseRef); err != nil {
		return err
	}
	for _, r := range ref {
		if r < ' ' || r == 0x7f {
			return badArgument("base_ref", "base_ref holds a control character")
		}
	}
	return nil
}

func init() {
	addOp[CreateWorktreeIn, CreateWorktreeOut](OpCreateWorktree, true)
	addOp[ObserveWorktreeIn, ObserveWorktreeOut](OpObserveWorktree, false)
}
