package runner

import (
	"context"
	"slices"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/ownerfile"
	"webcodex/runner/wire"
)

// standing is what the owner's projects file said when it was last sound, and what it came to.
type standing struct {
	every    time.Duration // between two looks
	seen     ownerfile.Stamp
	file     projectsFile
	projects map[event.ProjectID]bool // that are served because of it
	refused  map[string]bool          // paths that were told of as not served
}

// stand serves what is to be served besides what AddProject names: what the owner's projects file
// names, and what callers have registered in earlier lives. It follows the file until ctx ends;
// the function waits for that.
func (r *Runner) stand(ctx context.Context) (wait func()) {
	return r.follow(ctx, watchEvery)
}

func (r *Runner) follow(ctx context.Context, every time.Duration) (wait func()) {
	s := &standing{every: every, projects: map[event.ProjectID]bool{}, refused: map[string]bool{}}
	if r.o.ProjectsFile != "" {
		s.seen = ownerfile.StampOf(r.o.ProjectsFile)
		r.followFile(s)
	}
	r.serveKept(s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r.o.ProjectsFile != "" {
			r.watch(ctx, s)
		}
	}()
	return func() { <-done }
}

// watch follows the projects file until ctx ends. A file that is just being written is not read:
// it counts once it has been the same from one look to the next.
func (r *Runner) watch(ctx context.Context, s *standing) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	last := s.seen
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := ownerfile.StampOf(r.o.ProjectsFile)
		settled := now.Same(last)
		if last = now; settled && !now.Same(s.seen) {
			s.seen = now
			r.followFile(s)
			r.serveKept(s)
			r.sayHello()
		}
	}
}

// followFile does what the projects file says; a damaged one changes nothing.
func (r *Runner) followFile(s *standing) {
	file, err := readProjectsFile(r.o.ProjectsFile)
	if err != nil {
		r.setTrouble(wire.TroubleProjectsFile, "the projects file is damaged ("+err.Error()+"); what it said before holds")
		r.o.Logger.Error("the projects file is damaged; what it said before holds", "cause", err)
		return
	}
	r.setTrouble("", "")
	s.file = file
	r.projects.policy.allow(slices.Concat(r.o.AllowedRoots, file.AllowedRoots))
	now := map[event.ProjectID]bool{}
	for _, o := range file.Projects {
		p, _, err := r.projects.add(wish{path: o.Path, title: o.Name, by: byFile})
		if err != nil {
			r.tellRefused(s, o.Path, err)
			continue
		}
		delete(s.refused, o.Path)
		now[p.ID] = true
	}
	for id := range s.projects {
		if !now[id] {
			r.forsake(id, byFile)
		}
	}
	s.projects = now
}

// serveKept serves what callers have registered, as far as it lies where they may have Projects
// now. What does not is served no longer, and is again when it may be.
func (r *Runner) serveKept(s *standing) {
	for _, k := range r.projects.kept() {
		err := r.projects.again(k)
		if err == nil {
			delete(s.refused, k.Path)
			continue
		}
		r.tellRefused(s, k.Path, err)
		if r.projects.wants(k.id())&byCaller != 0 {
			r.forsake(k.id(), byCaller)
		}
	}
}

// tellRefused tells once of a Project that is not served.
func (r *Runner) tellRefused(s *standing, path string, err error) {
	if !s.refused[path] {
		s.refused[path] = true
		f := fault.As(err)
		r.o.Logger.Warn("a Project is not served", "path", path, "reason", f.Reason, "cause", f.Message)
	}
}

func (r *Runner) setTrouble(kind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble, r.troubleText = kind, text
}

// Trouble is what the owner should look at, as a sentence; empty: nothing.
func (r *Runner) Trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.troubleText
}
