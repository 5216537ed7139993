package session

import (
	"path"
	"strings"
	"unicode"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
)

// ContextIn is the closed set of execution defaults as a caller gives it.
type ContextIn struct {
	DefaultCwd   string `json:"default_cwd,omitempty"`
	DefaultShell string `json:"default_shell,omitempty"`
	Resource     string `json:"resource,omitempty"`
}

// Event checks the defaults and gives their stored form: the directory relative to the Project
// and clean, "." for its root (EXE-05), or as it is where it lies on a resource. They need a
// Project.
func (in *ContextIn) Event(hasProject bool) (*event.ExecutionContext, error) {
	if in == nil {
		return nil, nil
	}
	if !hasProject && *in != (ContextIn{}) {
		return nil, fault.New(fault.ContextNeedsProject, "execution defaults need a Session with a Project").
			WithField("execution_context")
	}
	invalid := func(field, why string) error {
		return fault.New(fault.InvalidContext, "%s", why).WithField("execution_context." + field)
	}
	cwd := in.DefaultCwd
	switch {
	case in.Resource != "" && !validResource(in.Resource):
		return nil, invalid("resource", "a resource's name is letters, digits, _, . and -, without two dots in a row")
	case in.Resource != "":
		// A directory there is not one of the Project; whether it is one is said there (EXE-07).
		if len(cwd) > MaxCwd || strings.ContainsFunc(cwd, unicode.IsControl) || redact.Text(cwd, MaxCwd) != cwd {
			return nil, invalid("default_cwd", "a directory on a resource has no control characters, and nothing that looks like a secret")
		}
	case cwd != "":
		clean, ok := redact.Path(cwd)
		if cwd = path.Clean(cwd); !ok || clean != cwd {
			return nil, invalid("default_cwd", "the default directory must be a path within the Project")
		}
	}
	if in.DefaultShell != "" && in.DefaultShell != "sh" && in.DefaultShell != "bash" {
		return nil, invalid("default_shell", "the default shell is sh or bash")
	}
	return &event.ExecutionContext{DefaultCwd: cwd, DefaultShell: in.DefaultShell, Resource: in.Resource}, nil
}

// validResource holds the form of EXE-04; whether the Runner has it is said when it is used.
func validResource(name string) bool {
	return len(name) <= MaxResource && !strings.Contains(name, "..") && redact.Text(name, MaxResource) == name &&
		!strings.ContainsFunc(name, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_.-", c)
		})
}
