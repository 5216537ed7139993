package runner

import (
	"slices"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/supervise"
)

// Allowed refuses a path that no Project of a caller may have: one outside the allowed roots, and
// one that holds our own directories or lies in them. It goes by the directories that really lie
// there; a path that does not exist yet counts where its nearest parent lies, so ask again once
// it does. Errors: invalid_path with reason outside_allowed_roots, data_directory, not_found, nul,
// unreadable.
func (r *Runner) Allowed(path string) error { return r.projects.policy.check(path) }

// AddProject serves a directory that the owner named, whatever the allowed roots are. Its id is
// kept in Options.Dir: adding it again, by any path that leads to it, gives the same Project.
// Errors: invalid_path with reason not_found, not_directory, data_directory.
func (r *Runner) AddProject(path string) (*Project, error) {
	p, _, err := r.projects.add(wish{path: path, by: bySelf})
	if err != nil {
		return nil, err
	}
	r.sayHello()
	return p, nil
}

// RemoveProject serves a Project no longer, whoever wanted it served: nothing new of it is taken,
// what runs of it is ended, and who asked for it (OnProjectRemoved) releases what else is kept for
// it. Its id stays known, so adding the directory again gives the same Project. Error:
// unknown_project.
func (r *Runner) RemoveProject(id event.ProjectID) error {
	if r.projects.wants(id) == 0 {
		return fault.New(fault.UnknownProject, "the Runner serves no such Project")
	}
	p, err := r.projects.dismiss(id, bySelf|byFile|byCaller)
	r.end(p)
	return err
}

// forsake serves a Project no longer for some who wanted it.
func (r *Runner) forsake(id event.ProjectID, by source) { r.end(r.projects.forsake(id, by)) }

// end ends what there is of a Project that is not served any more, and gives the executions that
// are being ended; nil: there is none.
func (r *Runner) end(p *Project) []*execution {
	if p == nil {
		return nil
	}
	id := p.ID
	p.leave()
	var ending []*execution
	r.mu.Lock()
	for _, e := range r.execs {
		if e.project.ID != id {
			continue
		}
		e.mu.Lock()
		if e.result == nil {
			ending = append(ending, e)
		}
		e.mu.Unlock()
		e.stop(reasonRemoved)
	}
	hooks := r.removed
	r.mu.Unlock()
	for _, release := range hooks {
		release(id)
	}
	r.sayHello()
	return ending
}

// OnProjectRemoved registers what releases the processes that are kept for a Project: shells and
// Jobs. It is called once the Project takes nothing new, and returns when they are ended or being
// ended; it may be called more than once. Register before the Runner serves.
func (r *Runner) OnProjectRemoved(release func(event.ProjectID)) {
	r.removed = append(r.removed, release)
}

// Guard ends what is held by it where this process dies without a word; it may be nil, and guards
// nothing then.
func (r *Runner) Guard() *supervise.Guard { return r.guard }

// OnClose registers what ends the processes that are kept beside executions. It is called when the
// Runner closes, after its executions have ended. Register before the Runner serves.
func (r *Runner) OnClose(end func()) { r.closing = append(r.closing, end) }

// Projects lists what is served, ordered by id.
func (r *Runner) Projects() []*Project {
	list := r.projects.list()
	slices.SortFunc(list, func(a, b *Project) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}
