package files

import (
	"os"
	"sync"

	"webcodex/runner"
	"webcodex/runner/wire"
)

// service holds what outlives one request: one lock a Project, so that transactions on it
// do not interleave.
type service struct {
	mu    sync.Mutex
	locks map[string]*sync.Mutex
	// ripgrep finds ripgrep; tests take it away.
	ripgrep func() string
	// between is called before each step of a transaction; tests break things there.
	between func(step int)
}

func newService() *service {
	return &service{locks: map[string]*sync.Mutex{}, ripgrep: findRipgrep, between: func(int) {}}
}

// Register adds the file ops to a Runner.
func Register(r *runner.Runner) {
	s := newService()
	runner.Read(r, wire.OpReadFiles, s.read)
	runner.Read(r, wire.OpListFiles, s.list)
	runner.Read(r, wire.OpOverview, s.overview)
	runner.Read(r, wire.OpSearchTexts, s.searchTexts)
	runner.Read(r, wire.OpSearchFile, s.searchFile)
	runner.Read(r, wire.OpPreviewEdit, s.preview)
	runner.Effect(r, wire.OpEditFiles, s.edit)
	runner.Effect(r, wire.OpWriteFile, s.write)
	runner.Effect(r, wire.OpDeleteFiles, s.remove)
}

// exclusive locks a Project for a transaction until the returned function is called. The
// root's identity is the key: two Projects never share one.
func (s *service) exclusive(root *os.Root, fingerprint string) func() {
	key := fingerprint
	if key == "" {
		key = root.Name()
	}
	s.mu.Lock()
	l := s.locks[key]
	if l == nil {
		l = &sync.Mutex{}
		s.locks[key] = l
	}
	s.mu.Unlock()
	l.Lock()
	return l.Unlock
}
