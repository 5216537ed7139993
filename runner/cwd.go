package runner

import (
	"os"

	"webcodex/internal/fault"
)

// OpenCwd opens a working directory below a Project's root, by its project-relative path; empty:
// the root. What is opened is what a child gets. Errors: invalid_path with reason absolute,
// outside_project, symlink_outside, not_found, not_directory, unreadable.
func OpenCwd(p *Project, cwd string) (*os.File, *fault.Error) { return openCwd(p, cwd) }
