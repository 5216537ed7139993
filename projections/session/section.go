package session

import "webcodex/eventlog/event"

// Reason codes of sections without evidence. They are fixed; the text of an error never
// becomes one (HND-31).
const (
	codeBoundaryEvicted       = "attempt_boundary_evicted"
	codeChangedSince          = "files_changed_since" // the pass that is told of
	codeCheckpoints           = "checkpoints_unavailable"
	codeDiffNotHere           = "diff_not_observed"
	codeDiscussion            = "discussion_unavailable"
	codeExternal              = "external_observations_unavailable"
	codeExternalChanged       = "external_observations_changed_during_snapshot"
	codeGuidance              = "guidance_unavailable"
	codeHygiene               = "hygiene_unavailable"
	codeLocations             = "failure_locations_not_recorded"
	codeSessionChanged        = "session_changed_during_snapshot"
	codeUnknownOutcome        = "execution_outcome_unknown"
	codeValidationUnavailable = "validation_unavailable"
	codeValidationSkipped     = "validation_not_requested"
	codeWorkspaceUnavailable  = "workspace_unavailable"
	codeWorkspaceSkipped      = "workspace_not_requested"
)

// Statuses of a section.
const (
	statusAvailable     = "available"
	statusUnavailable   = "unavailable"
	statusNotRequested  = "not_requested"
	statusNotApplicable = "not_applicable"
)

// Section is a part of a view that has a status and nothing else to tell yet.
type Section struct {
	Status     string `json:"status"`
	ReasonCode string `json:"reason_code,omitempty"`
}

func requested(asked bool, reason string) Section {
	if !asked {
		return Section{Status: statusNotRequested}
	}
	return Section{statusUnavailable, reason}
}

// List is the newest of something, with its real total (HND-16).
type List[T any] struct {
	Total     int  `json:"total"`
	Returned  int  `json:"returned"`
	Truncated bool `json:"truncated"`
	Items     []T  `json:"items"`
}

func newList[T any](all []T, limit int) List[T] {
	l := List[T]{Total: len(all), Items: append([]T{}, all[:min(limit, len(all))]...)}
	l.count()
	return l
}

func (l *List[T]) count() {
	l.Returned = len(l.Items)
	l.Truncated = l.Returned < l.Total
}

// shed removes items from the end until over bytes of JSON are freed or none is left, and
// reports whether there was one.
func (l *List[T]) shed(over int) bool {
	if len(l.Items) == 0 {
		return false
	}
	for over > 0 && len(l.Items) > 0 {
		last := len(l.Items) - 1
		over -= size(l.Items[last]) + 1
		l.Items = l.Items[:last]
	}
	l.count()
	return true
}

// Action is an advisory step with its arguments filled in; it grants nothing.
type Action struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Why       string         `json:"why"`
}

// Continuation is the one exact call that goes on with the task.
type Continuation struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// Workspace is what a Runner saw of the working tree.
type Workspace struct {
	// Status is clean, dirty, blocked (conflicts) or unavailable; empty is unavailable.
	Status    string
	Reason    string // of unavailable, a fixed code
	Branch    string // empty when detached
	Head      string // full commit id, empty before the first commit
	Conflicts int
	// ChangedFiles counts changed, conflicted and untracked files.
	ChangedFiles int
	// Tree is the identity of the files (event.Binding.Tree), empty where nobody could tell it;
	// TreeReason then says why.
	Tree, TreeReason string
}

// Workspace statuses that tell something.
const (
	workspaceClean   = "clean"
	workspaceDirty   = "dirty"
	workspaceBlocked = "blocked"
)

func (w *Workspace) seen() bool {
	return w != nil && (w.Status == workspaceClean || w.Status == workspaceDirty || w.Status == workspaceBlocked)
}

// tree is the identity of the files as they are now, empty where it is not known.
func (s Snapshot) tree() string {
	if !s.IncludeWorkspace || !s.Workspace.seen() {
		return ""
	}
	return s.Workspace.Tree
}

// Snapshot is what a caller observed beside the Session. The views below are pure functions
// of a View and a Snapshot.
type Snapshot struct {
	// Server is the server life that reads: Jobs started in another one are recovering.
	Server event.InstanceID
	// IncludeWorkspace, IncludeValidation and IncludeCheckpoints say what was asked for; a
	// section left out says so and is never shown as empty (HND-05).
	IncludeWorkspace   bool
	IncludeValidation  bool
	IncludeCheckpoints bool
	// Workspace is nil where no Runner could tell.
	Workspace *Workspace
	// Checkpoints is nil where no Runner could tell.
	Checkpoints *Checkpoints
	// SessionChanged: others moved the Session on while the caller gathered the rest (Fence).
	SessionChanged bool
	// NoDiscussion: the board could not be read.
	NoDiscussion bool
	// External are the reports of adapters outside; nil: they could not be read.
	External *ExternalReports
	// ExternalChanged: another one came meanwhile (HND-36).
	ExternalChanged bool
}
