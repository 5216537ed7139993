package runner

import (
	"os"
	"sync"

	"webcodex/eventlog/event"
)

// Project is a directory that the Runner serves. Handlers reach files through Root only; Path
// is for programs that must be told a name, never for opening.
type Project struct {
	ID   event.ProjectID
	Name string // folder name, for people
	// Title is what a caller or the owner called it; empty: nobody did.
	Title string
	Path  string // absolute, symlinks resolved
	Root  *os.Root
	// Fingerprint identifies the root directory: device, inode and a stored random id
	// (shapes.md 2), 64 lowercase hex.
	Fingerprint string
	Git         bool // a .git entry lies in the root

	mu      sync.Mutex
	holders int
	left    bool // it is not served any more; the last holder closes Root
}

// hold keeps Root open until drop. It reports false where the Project is served no longer.
func (p *Project) hold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return false
	}
	p.holders++
	return true
}

func (p *Project) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holders--; p.holders == 0 && p.left {
		_ = p.Root.Close()
	}
}

// leave gives Root up as soon as nobody holds it.
func (p *Project) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return
	}
	if p.left = true; p.holders == 0 {
		_ = p.Root.Close()
	}
}
