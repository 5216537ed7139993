package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Ops about the Runner's own Projects. They are of the Runner and of no Project: their fence
// names neither Project nor root (OfRunner). Where a path may lie is the Runner's word alone.
const (
	// OpFindProject tells which Project serves a directory, if one does.
	OpFindProject Op = "find_project"
	// OpRegisterProject serves a directory that is there; OpCreateProject makes it first.
	OpRegisterProject Op = "register_project"
	OpCreateProject   Op = "create_project"
	// OpUnregisterProject serves a Project no longer and ends what runs of it.
	OpUnregisterProject Op = "unregister_project"
)

// MaxProjectPath and MaxProjectName bound what a caller says of a Project: bytes and characters.
const (
	MaxProjectPath = 4096
	MaxProjectName = 120
)

// TroubleProjectsFile is Hello.Trouble where the owner's projects file is damaged: what it said
// before holds.
const TroubleProjectsFile = "projects_file_damaged"

func init() {
	addOp[FindProjectIn, FindProjectOut](OpFindProject, false)
	addOp[RegisterProjectIn, RegisterProjectOut](OpRegisterProject, true)
	addOp[CreateProjectIn, RegisterProjectOut](OpCreateProject, true)
	addOp[UnregisterProjectIn, UnregisterProjectOut](OpUnregisterProject, true)
}

// OfRunner reports an op about the Runner itself: no Project is its target.
func (op Op) OfRunner() bool {
	switch op {
	case OpFindProject, OpRegisterProject, OpCreateProject, OpUnregisterProject:
		return true
	}
	return false
}

// FindProjectIn names a directory on the Runner's machine.
type FindProjectIn struct {
	Path string `json:"path"`
}

// FindProjectOut is the Project whose root it is; nil: none is, and one may be registered there.
type FindProjectOut struct {
	Project *Project `json:"project,omitempty"`
}

// RegisterProjectIn names a directory that is to be served.
type RegisterProjectIn struct {
	Path string `json:"path"`
	Name string `json:"name,omitempty"` // for people; empty: the folder's, or what it was called before
}

// Check says what is wrong with the request by itself: invalid_arguments and invalid_path.
func (in RegisterProjectIn) Check() error { return checkProject(in.Path, in.Name) }

// CreateProjectIn names a directory that is to be made and served.
type CreateProjectIn struct {
	Path    string `json:"path"`
	Name    string `json:"name,omitempty"`
	GitInit bool   `json:"git_init,omitempty"` // make it an empty repository
}

// Check is that of RegisterProjectIn.
func (in CreateProjectIn) Check() error { return checkProject(in.Path, in.Name) }

func checkProject(path, name string) error {
	if err := CheckProjectPath(path); err != nil {
		return err
	}
	return CheckProjectName(name)
}

// RegisterProjectOut is the Project as it is served now.
type RegisterProjectOut struct {
	Project Project `json:"project"`
	// Registered tells that it was not served before.
	Registered bool `json:"registered"`
}

// UnregisterProjectIn names the Project that is to be served no longer.
type UnregisterProjectIn struct {
	Project event.ProjectID `json:"project"`
}

// UnregisterProjectOut says what was ended.
type UnregisterProjectOut struct {
	// Unregistered is false where the Runner did not serve it.
	Unregistered bool `json:"unregistered"`
	// Ended counts the executions that were running.
	Ended int `json:"ended"`
}

// CheckProjectPath refuses a path whose text names no place on the Runner's machine: what is
// relative would depend on where the Runner was started. Errors: invalid_path with reason
// not_absolute, nul; invalid_arguments.
func CheckProjectPath(path string) error {
	switch {
	case path == "" || len(path) > MaxProjectPath:
		return badArgument("path", "path must have 1 to %d bytes", MaxProjectPath)
	case !utf8.ValidString(path):
		return badArgument("path", "path is not valid UTF-8")
	case strings.ContainsRune(path, 0):
		return fault.New(fault.InvalidPath, "a path has no NUL byte").WithField("path").WithReason("nul")
	case !strings.HasPrefix(path, "/"):
		return fault.New(fault.InvalidPath, "the path of a Project is absolute, as it is on the Runner's machine").WithField("path").WithReason("not_absolute")
	}
	return nil
}

// CheckProjectName refuses a name that could not be shown on one line. Error: invalid_arguments.
func CheckProjectName(name string) error {
	if n := utf8.RuneCountInString(name); n > MaxProjectName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return badArgument("name", "name is one line of at most %d characters", MaxProjectName)
	}
	return nil
}
