package wire

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ops of workspace checkpoints: the files of a Project as they were, kept as git objects under a ref
// of their own.
const (
	OpCreateCheckpoint  Op = "create_checkpoint"
	OpListCheckpoints   Op = "list_checkpoints"
	OpReadCheckpoint    Op = "read_checkpoint"
	OpRestoreCheckpoint Op = "restore_checkpoint"
	OpDeleteCheckpoint  Op = "delete_checkpoint"
)

// Bounds of what is said of a checkpoint, and of one listing.
const (
	MaxCheckpointTitle   = 200  // characters
	MaxCheckpointNote    = 2000 // characters
	MaxCheckpointLabels  = 20
	MaxCheckpointLabel   = 64 // of A-Z a-z 0-9 . _ -
	MaxListedCheckpoints = 100
	MaxCheckpointFiles   = 200 // of one page
)

// CheckpointKinds are why one was made; the first is where none is named.
var CheckpointKinds = []string{"snapshot", "baseline", "before_refactor", "after_refactor", "last_known_good", "rollback_candidate"}

// CheckpointAbout is what its maker says of a checkpoint.
type CheckpointAbout struct {
	Title  string   `json:"title,omitempty"`
	Note   string   `json:"note,omitempty"`
	Kind   string   `json:"kind"`
	Labels []string `json:"labels,omitempty"`
}

// CheckpointInfo is one checkpoint without its files.
type CheckpointInfo struct {
	ID string `json:"checkpoint_id"`
	CheckpointAbout
	CreatedAt string `json:"created_at"`
	// Head and Branch as they were; no head before the first commit.
	Head   string `json:"head,omitempty"`
	Branch string `json:"branch,omitempty"`
	// State of the working tree that it holds: the same as long as HEAD and all files are.
	State string `json:"state"`
	// Files that differed from head then: kept with their content, and gone. The rest is as in head.
	Kept    int   `json:"kept_files"`
	Deleted int   `json:"deleted_files"`
	Bytes   int64 `json:"bytes"`
	// Untracked tells whether untracked files are part of it.
	Untracked bool `json:"include_untracked"`
	// Complete is false where files were skipped.
	Complete bool `json:"complete"`
	Skipped  int  `json:"skipped_files"`
}

// SkippedFile is one that a checkpoint does not hold, or a restore left as it is.
type SkippedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// CreateCheckpointIn makes one under an id of the server's; the same id again is the same one.
type CreateCheckpointIn struct {
	ID string `json:"id"`
	CheckpointAbout
	Untracked bool `json:"include_untracked"`
}

// CreateCheckpointOut is what was made.
type CreateCheckpointOut struct {
	CheckpointInfo
	SkippedFiles []SkippedFile `json:"skipped"` // the first MaxCheckpointFiles
}

// ListCheckpointsIn asks for the newest.
type ListCheckpointsIn struct {
	Limit int `json:"limit"`
}

// ListCheckpointsOut has the newest first.
type ListCheckpointsOut struct {
	Checkpoints []CheckpointInfo `json:"checkpoints"`
	Total       int              `json:"total"`
	// NoRepository: the Project is none, so there can be no checkpoint.
	NoRepository bool `json:"no_repository,omitempty"`
}

// ReadCheckpointIn asks for one and for what a restore would do now.
type ReadCheckpointIn struct {
	ID     string `json:"id"`
	Offset int    `json:"offset,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}

// CheckpointFile is one file of a checkpoint that differed from its head.
type CheckpointFile struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // file, program, symlink, deleted
}

// CheckpointChange is one path that a restore would make, or made, what it was.
type CheckpointChange struct {
	Path   string `json:"path"`
	Action string `json:"action"` // write, delete
}

// ReadCheckpointOut is a page of its files, and how the working tree differs from it now.
type ReadCheckpointOut struct {
	CheckpointInfo
	Files        []CheckpointFile `json:"files"`
	NextOffset   *int             `json:"next_offset,omitempty"`
	SkippedFiles []SkippedFile    `json:"skipped"`
	// Current is the state that a restore is to be made from.
	Current string `json:"current_state"`
	// Changes are the first MaxCheckpointFiles of what a restore would do now.
	Changes     []CheckpointChange `json:"restore_changes"`
	ChangeCount int                `json:"restore_change_count"`
	HeadMoved   bool               `json:"head_moved"`
}

// RestoreCheckpointIn makes the working tree what it was, if it still is in the state Expected.
type RestoreCheckpointIn struct {
	ID       string `json:"id"`
	Expected string `json:"expected_state"`
	// Before is the id of a checkpoint that is made of what is there first.
	Before string `json:"before"`
}

// RestoreCheckpointOut tells what was done.
type RestoreCheckpointOut struct {
	ID          string             `json:"checkpoint_id"`
	Restored    bool               `json:"restored"` // false: everything was so already
	Changes     []CheckpointChange `json:"changes"`  // the first MaxCheckpointFiles
	ChangeCount int                `json:"change_count"`
	Skipped     []SkippedFile      `json:"skipped"`
	Complete    bool               `json:"complete"` // nothing was left as it is
	Before      string             `json:"previous_checkpoint_id,omitempty"`
	Head        string             `json:"head,omitempty"`
	HeadMoved   bool               `json:"head_moved"` // commits came or went since; they stay
	State       string             `json:"state"`
}

// DeleteCheckpointIn forgets one.
type DeleteCheckpointIn struct {
	ID string `json:"id"`
}

// DeleteCheckpointOut tells that it is gone.
type DeleteCheckpointOut struct {
	ID      string `json:"checkpoint_id"`
	Deleted bool   `json:"deleted"`
}

var (
	checkpointForm = regexp.MustCompile(`^wc_ckpt_[0-9a-f]{32}$`)
	labelForm      = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	stateForm      = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// CheckCheckpoint says what is wrong with the form of a checkpoint's id.
func CheckCheckpoint(id string) error {
	if !checkpointForm.MatchString(id) {
		return badArgument("checkpoint_id", "a checkpoint id is wc_ckpt_ and 32 hex digits").WithNext("call list_workspace_checkpoints")
	}
	return nil
}

// Check says what is wrong with the request by itself: invalid_arguments with a field.
func (in CreateCheckpointIn) Check() error {
	if err := CheckCheckpoint(in.ID); err != nil {
		return err
	}
	return in.CheckpointAbout.Check()
}

// Check is that of CreateCheckpointIn.
func (a CheckpointAbout) Check() error {
	if err := checkLine("title", a.Title, MaxCheckpointTitle, unicode.IsControl); err != nil {
		return err
	}
	if err := checkLine("note", a.Note, MaxCheckpointNote, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); err != nil {
		return err
	}
	if !slices.Contains(CheckpointKinds, a.Kind) {
		return badArgument("kind", "kind is one of %s", strings.Join(CheckpointKinds, ", "))
	}
	if len(a.Labels) > MaxCheckpointLabels {
		return badArgument("labels", "labels has more than %d entries", MaxCheckpointLabels)
	}
	for _, l := range a.Labels {
		if !labelForm.MatchString(l) {
			return badArgument("labels", "a label has 1 to %d of A-Z a-z 0-9 . _ -", MaxCheckpointLabel)
		}
	}
	return nil
}

func checkLine(field, text string, most int, bad func(rune) bool) error {
	if utf8.RuneCountInString(text) > most || !utf8.ValidString(text) || strings.ContainsFunc(text, bad) {
		return badArgument(field, "%s has at most %d characters and no control characters", field, most)
	}
	return nil
}

// Check is that of CreateCheckpointIn for a restore.
func (in RestoreCheckpointIn) Check() error {
	if err := CheckCheckpoint(in.ID); err != nil {
		return err
	}
	if !stateForm.MatchString(in.Expected) {
		return badArgument("expected_state", "expected_state is the current_state that read_workspace_checkpoint gave").
			WithNext("call read_workspace_checkpoint")
	}
	return CheckCheckpoint(in.Before)
}

func init() {
	addOp[CreateCheckpointIn, CreateCheckpointOut](OpCreateCheckpoint, true)
	addOp[ListCheckpointsIn, ListCheckpointsOut](OpListCheckpoints, false)
	addOp[ReadCheckpointIn, ReadCheckpointOut](OpReadCheckpoint, false)
	addOp[RestoreCheckpointIn, RestoreCheckpointOut](OpRestoreCheckpoint, true)
	addOp[DeleteCheckpointIn, DeleteCheckpointOut](OpDeleteCheckpoint, true)
}
