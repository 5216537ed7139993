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

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
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
	Random string `json:"random"` // 32 hex digits
	Name   string `json:"name"`   // folder name at the first time: the id's slug comes from it
	Path   string `json:"path"`   // where it was last seen
	At     inode  `json:"at"`     // as registered: the fingerprint is made of it
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
}

// registry is the Projects of a Runner: all it ever knew, and those it serves.
type registry struct {
	dir    string
	policy *policy
	// prepare is done with a Project before it can be found.
	prepare []func(*Project)

	mu     sync.RWMutex
	known  []known
	served map[event.ProjectID]*served
}

func openRegistry(dir string, deny []string) (*registry, error) {
	g := &registry{dir: dir, policy: &policy{deny: append([]string{dir}, deny...)}, served: map[event.ProjectID]*served{}}
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

// add serves a directory; adding it again gives the same Project.
func (g *registry) add(path string) (*Project, error) {
	real, err := realDir(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidPath, "the Project's directory cannot be opened").WithField("path").WithReason("unreadable")
	}
	p, err := g.admit(real, root)
	if err != nil || p.Root != root {
		_ = root.Close()
	}
	return p, err
}

func (g *registry) admit(real string, root *os.Root) (*Project, error) {
	at, err := inodeOf(root)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidPath, "the Project's directory cannot be looked at").WithField("path")
	}
	if err := g.policy.denied(root); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k, err := g.remember(real, at)
	if err != nil {
		return nil, err
	}
	if s := g.served[k.id()]; s != nil {
		return s.project, nil
	}
	_, gitErr := root.Lstat(".git")
	p := &Project{ID: k.id(), Name: filepath.Base(real), Path: real, Root: root, Fingerprint: k.fingerprint(), Git: gitErr == nil}
	for _, do := range g.prepare {
		do(p)
	}
	g.served[p.ID] = &served{project: p, at: at}
	return p, nil
}

// remember finds or makes the stored identity and keeps its path current.
func (g *registry) remember(path string, at inode) (known, error) {
	for i := range g.known {
		if k := &g.known[i]; k.is(path, at) {
			if k.Path == path {
				return *k, nil
			}
			k.Path = path
			return *k, g.save()
		}
	}
	k := known{Random: event.NewNonce(), Name: filepath.Base(path), Path: path, At: at}
	g.known = append(g.known, k)
	if err := g.save(); err != nil {
		g.known = g.known[:len(g.known)-1]
		return known{}, err
	}
	return k, nil
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
			WithNext("add the Project again with webcodex up")
	}
	if !s.project.hold() {
		return nil, fault.New(fault.UnknownProject, "the Runner serves no such Project")
	}
	return s.project, nil
}

// remove serves a Project no longer; what it is known by stays.
func (g *registry) remove(id event.ProjectID) (*Project, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.served[id]
	if s == nil {
		return nil, fault.New(fault.UnknownProject, "the Runner serves no such Project")
	}
	delete(g.served, id)
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

func realDir(path string) (string, error) {
	bad := func(err error, reason, text string) error {
		return fault.Wrap(err, fault.InvalidPath, "%s", text).WithField("path").WithReason(reason)
	}
	if strings.ContainsRune(path, 0) {
		return "", bad(nil, "nul", "a path has no NUL byte")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", bad(err, "not_found", "the directory cannot be found")
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", bad(err, "not_found", "the directory does not exist")
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", bad(err, "not_found", "the directory does not exist")
	}
	if !info.IsDir() {
		return "", bad(nil, "not_directory", "a Project is a directory")
	}
	return real, nil
}

func inodeOf(root *os.Root) (inode, error) {
	d, err := root.Open(".")
	if err != nil {
		return inode{}, err
	}
	defer d.Close()
	return bornAt(int(d.Fd()))
}

func inodeAt(path string) (inode, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return inode{}, err
	}
	return inode{Device: uint64(st.Dev), Inode: st.Ino}, nil
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
