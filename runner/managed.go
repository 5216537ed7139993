package runner

import (
	"os"

	"webcodex/internal/fault"
)

// MayHold reports whether a directory that the Runner makes in the directory at path lies within
// its owner's policy: in an allowed root, where any are set. It never widens them (NEG-26).
// Errors: invalid_path with reason outside_allowed_roots, unreadable.
func (r *Runner) MayHold(path string) error {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return fault.Wrap(err, fault.InvalidPath, "the directory cannot be opened").WithField("path").WithReason("unreadable")
	}
	defer dir.Close()
	if len(r.projects.policy.allowedRoots()) == 0 {
		return nil
	}
	_, err = r.projects.policy.within(dir)
	return err
}

// Same reports that the directory at the Project's path is still its root, whatever has been put
// there since it was found.
func (p *Project) Same() bool {
	at, err := inodeOf(p.Root)
	if err != nil {
		return false
	}
	now, err := inodeAt(p.Path)
	return err == nil && now.Device == at.Device && now.Inode == at.Inode
}

// OnProjectAdded registers who is told of each Project that comes to be served. It may add more.
// Register before Projects are added.
func (r *Runner) OnProjectAdded(tell func(*Project)) {
	r.projects.added = append(r.projects.added, tell)
}
