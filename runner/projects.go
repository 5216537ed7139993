package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// rootForm is hashed into every root fingerprint (shapes.md 2).
const rootForm = "webcodex.workflow-repository-root.v1"

// inode identifies a directory on this machine. Born is its creation time where the file
// system tells it: numbers are used again.
type inode struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Born   int64  `json:"born,omitempty"`
}

// known is a Project that was added once. It keeps its id whatever happens to its path.
type known struct {
	Random string `json:"random"`          // 32 hex digits
	Name   string `json:"name"`            // folder name at the first time: the id's slug comes from it
	Path   string `json:"path"`            // where it was last seen
	At     inode  `json:"at"`              // as registered: the fingerprint is made of it
	Title  string `json:"title,omitempty"` // what a caller called it; empty: the folder's name
	// Kept tells that a caller registered it: each life serves it again, where that is allowed.
	Kept bool `json:"kept,omitempty"`
}

func (k known) id() event.ProjectID {
	return event.ProjectID(slug(k.Name) + "-" + k.Random[:8])
}

func (k known) fingerprint() string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%s", rootForm, k.At.Device, k.At.Inode, k.Random))
	return hex.EncodeToString(h[:])
}

// is reports that the directory found at path is this Project's root. A device number may
// change at a reboot, a path by a rename; not both at once.
func (k known) is(path string, at inode) bool {
	if k.At.Inode != at.Inode || (k.At.Born != 0 && at.Born != 0 && k.At.Born != at.Born) {
		return false
	}
	return k.At.Device == at.Device || k.Path == path
}

// served is a Project of this life.
type served struct {
	project *Project
	at      inode
	by      source
}

// source is who wants a Project served; it is as long as anybody does.
type source uint8

const (
	bySelf   source = 1 << iota // the owner, for this life (AddProject)
	byFile                      // the owner, in the projects file
	byCaller                    // a caller, for good: it is kept
)

// registry is the Projects of a Runner: all it ever knew, and those it serves.
type registry struct {
	dir    string
	policy *policy
	// prepare is done with a Project before it can be found.
	prepare []func(*Project)
	// added is told of a Project once it can be found.
	added []func(*Project)

	mu     sync.RWMutex
	known  []known
	served map[event.ProjectID]*served
	full   int // as many are served at most
}

func openRegistry(dir string, deny []string) (*registry, error) {
	g := &registry{dir: dir, policy: &policy{deny: append([]string{dir}, deny...)}, served: map[event.ProjectID]*served{}, full: wire.MaxProjects}
	b, err := os.ReadFile(g.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return g, nil
	case err != nil:
		return nil, fmt.Errorf("projects: %w", err)
	}
	if err := json.Unmarshal(b, &g.known); err != nil {
		return nil, fmt.Errorf("projects: %w", err)
	}
	for _, k := range g.known {
		if len(k.Random) != 32 {
			return nil, errors.New("projects: the file is damaged")
		}
	}
	return g, nil
}

func (g *registry) file() string { return filepath.Join(g.dir, "projects.json") }

// wish is a directory that somebody wants served.
type wish struct {
	path  string
	title string // empty: as before
	by    source
}

// add serves a directory; adding it again gives the same Project. fresh tells that it was not
// served before.
func (g *registry) add(w wish) (p *Project, fresh bool, err error) {
	real, err := realDir(w.path)
	if err != nil {
		if w.by == byCaller {
			err = g.hide(w.path, err)
		}
		return nil, false, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, false, fault.Wrap(err, fault.InvalidPath, "the Project's directory cannot be opened").WithField("path").WithReason("unreadable")
	}
	p, fresh, err = g.admit(w, real, root)
	if err != nil || p.Root != root {
		_ = root.Close()
	}
	if fresh {
		for _, tell := range g.added {
			tell(p)
		}
	}
	return p, fresh, err
}

// hide keeps from a caller what is there outside of the allowed roots.
func (g *registry) hide(path string, err error) error {
	if outside := g.policy.check(path); outside != nil {
		return outside
	}
	return err
}

// again serves a kept Project if it is still the directory it was, and lies where callers may
// have Projects.
func (g *registry) again(k known) error {
	real, err := realDir(k.Path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return fault.Wrap(err, fault.InvalidPath, "the Project's directory cannot be opened").WithReason("unreadable")
	}
	at, err := inodeOf(root)
	if err == nil && !k.is(real, at) {
		err = fault.New(fault.InvalidPath, "another directory lies there now").WithReason("root_changed")
	}
	if err == nil {
		err = g.policy.judge(root)
	}
	if cerr := root.Close(); err == nil && cerr == nil {
		_, _, err = g.add(wish{path: real, by: byCaller})
	}
	return err
}

func (g *registry) admit(w wish, real string, root *os.Root) (_ *Project, fresh bool, _ error) {
	at, err := inodeOf(root)
	if err != nil {
		return nil, false, fault.Wrap(err, fault.InvalidPath, "the Project's directory cannot be looked at").WithField("path")
	}
	if err := g.policy.denied(root); err != nil {
		return nil, false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.by == byCaller {
		if _, err := g.policy.within(root); err != nil {
			if s := g.at(real, at); s != nil {
				return s.project, false, nil // the owner's: it is served, and not kept
			}
			return nil, false, err
		}
	}
	if s := g.at(real, at); s == nil && len(g.served) >= g.full {
		return nil, false, fault.New(fault.CapacityReached, "the Runner serves %d Projects, and no more", g.full).
			WithNext("unregister one that is not needed")
	}
	k, err := g.remember(w, real, at)
	if err != nil {
		return nil, false, err
	}
	if s := g.served[k.id()]; s != nil {
		s.by |= w.by
		return s.project, false, nil
	}
	_, gitErr := root.Lstat(".git")
	p := &Project{ID: k.id(), Name: filepath.Base(real), Title: k.Title, Path: real, Root: root, Fingerprint: k.fingerprint(), Git: gitErr == nil}
	for _, do := range g.prepare {
		do(p)
	}
	g.served[p.ID] = &served{project: p, at: at, by: w.by}
	return p, true, nil
}

// servedAt gives the served Project whose root a directory is; nil: none.
func (g *registry) servedAt(real string, at inode) *Project {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if s := g.at(real, at); s != nil {
		return s.project
	}
	return nil
}

// at is the served Project whose root a directory is; nil: none.
func (g *registry) at(path string, at inode) *served {
	for _, k := range g.known {
		if k.is(path, at) {
			return g.served[k.id()]
		}
	}
	return nil
}

// remember finds or makes the stored identity and keeps its path current.
func (g *registry) remember(w wish, path string, at inode) (known, error) {
	kept := w.by == byCaller
	for i := range g.known {
		k := &g.known[i]
		if !k.is(path, at) {
			continue
		}
		old := *k
		k.Path, k.Kept = path, k.Kept || kept
		if w.title != "" {
			k.Title = w.title
		}
		if *k == old {
			return old, nil
		}
		if err := g.save(); err != nil {
			*k = old
			return known{}, err
		}
		return *k, nil
	}
	if kept && len(g.known) >= maxKnown {
		return known{}, fault.New(fault.CapacityReached, "the Runner knows %d Projects, and keeps no more", maxKnown)
	}
	k := known{Random: event.NewNonce(), Name: filepath.Base(path), Path: path, At: at, Title: w.title, Kept: kept}
	g.known = append(g.known, k)
	if err := g.save(); err != nil {
		g.known = g.known[:len(g.known)-1]
		return known{}, err
	}
	return k, nil
}

// forsake notes that some want a Project served no longer. It gives the Project if nobody else
// wants it now: it is not served any more. What it is known by stays.
func (g *registry) forsake(id event.ProjectID, by source) *Project {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.drop(id, by)
}

// dismiss is forsake for good: the Project is not kept for later lives either.
func (g *registry) dismiss(id event.ProjectID, by source) (*Project, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.known {
		if k := &g.known[i]; k.id() == id && k.Kept {
			k.Kept = false
			if err := g.save(); err != nil {
				k.Kept = true
				return nil, err
			}
		}
	}
	return g.drop(id, by), nil
}

func (g *registry) drop(id event.ProjectID, by source) *Project {
	s := g.served[id]
	if s == nil {
		return nil
	}
	if s.by &^= by; s.by != 0 {
		return nil
	}
	delete(g.served, id)
	return s.project
}

// wants tells who wants a Project served.
func (g *registry) wants(id event.ProjectID) source {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if s := g.served[id]; s != nil {
		return s.by
	}
	return 0
}

// kept lists where the Projects were last seen that callers have registered.
func (g *registry) kept() []known {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var out []known
	for _, k := range g.known {
		if k.Kept {
			out = append(out, k)
		}
	}
	return out
}

func (g *registry) save() error {
	b, err := json.MarshalIndent(g.known, "", " ")
	if err == nil {
		err = replaceFile(g.file(), append(b, '\n'))
	}
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the Runner's directory cannot be written")
	}
	return nil
}

// find gives a served Project whose root is still the directory it was. The caller holds it, and
// drops it when its Root is needed no more.
func (g *registry) find(id event.ProjectID) (*Project, error) {
	g.mu.RLock()
	s := g.served[id]
	g.mu.RUnlock()
	if s == nil {
		return nil, fault.New(fault.UnknownProject, "the Runner serves no such Project")
	}
	if now, err := inodeAt(s.project.Path); err != nil || now.Inode != s.at.Inode || now.Device != s.at.Device {
		return nil, fault.New(fault.RunnerRefused, "the Project's directory was moved or replaced").WithReason("root_changed").
			WithNext("register the directory again, or add it with webcodex up")
	}
	if !s.project.hold() {
		return nil, fault.New(fault.UnknownProject, "the Runner serves no such Project")
	}
	return s.project, nil
}

func (g *registry) list() []*Project {
	g.mu.RLock()
	defer g.mu.RUnlock()
	out := make([]*Project, 0, len(g.served))
	for _, s := range g.served {
		out = append(out, s.project)
	}
	return out
}

func (g *registry) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.served {
		s.project.leave()
	}
	g.served = map[event.ProjectID]*served{}
}

// slug is the readable part of a Project id: at most 40 of [a-z0-9-]. Names that fall
// together here stay apart by the random part.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == 40 {
			break
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "project"
}

// replaceFile replaces a small file atomically and durably.
func replaceFile(path string, b []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return syncDir(filepath.Dir(path))
}
