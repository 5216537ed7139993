package files

import (
	"os"
	"path/filepath"
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
	// notes of the transactions in progress.
	notes *notebook
	// between is called before each step of a transaction, reached after every other thing it
	// does; tests break things there.
	between func(step int)
	reached func(point string)
}

func newService(notes *notebook) *service {
	return &service{locks: map[string]*sync.Mutex{}, ripgrep: findRipgrep, notes: notes, between: func(int) {}, reached: func(string) {}}
}

// Register adds the file ops to a Runner. Before a Project is served, changes that an earlier
// life left half-done in it are ended. Others change files of a Project through what it gives.
func Register(r *runner.Runner) Changer {
	s := newService(&notebook{dir: filepath.Join(r.Dir(), "edits"), sync: r.Durable()})
	runner.Prepare(r, s.recover)
	runner.Read(r, wire.OpReadFiles, s.read)
	runner.Read(r, wire.OpListFiles, s.list)
	runner.Read(r, wire.OpOverview, s.overview)
	runner.Read(r, wire.OpSearchTexts, s.searchTexts)
	runner.Read(r, wire.OpSearchFile, s.searchFile)
	runner.Read(r, wire.OpPreviewEdit, s.preview)
	runner.Effect(r, wire.OpEditFiles, s.edit)
	runner.Effect(r, wire.OpWriteFile, s.write)
	runner.Effect(r, wire.OpDeleteFiles, s.remove)
	runner.Read(r, wire.OpCheckPatch, s.checkPatch)
	runner.Effect(r, wire.OpApplyPatch, s.applyPatch)
	runner.Read(r, wire.OpPreviewDiscard, s.previewDiscard)
	runner.Effect(r, wire.OpDiscardUntracked, s.discardUntracked)
	return Changer{s}
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
