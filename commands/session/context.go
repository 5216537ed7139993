package session

import (
	"path"

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
// and clean, "." for its root (EXE-05). They need a Project.
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
	if cwd != "" {
		clean, ok := redact.Path(cwd)
		if cwd = path.Clean(cwd); !ok || clean != cwd {
			return nil, invalid("default_cwd", "the default directory must be a path within the Project")
		}
	}
	if in.DefaultShell != "" && in.DefaultShell != "sh" && in.DefaultShell != "bash" {
		return nil, invalid("default_shell", "the default shell is sh or bash")
	}
	if in.Resource != "" {
		return nil, fault.New(fault.Unavailable, "SSH resources are not available on this server").WithField("execution_context.resource")
	}
	return &event.ExecutionContext{DefaultCwd: cwd, DefaultShell: in.DefaultShell}, nil
}
