package runner

import (
	"os"

	"webcodex/eventlog/event"
)

// Project is a directory that the Runner serves. Handlers reach files through Root only; Path
// is for programs that must be told a name, never for opening.
type Project struct {
	ID   event.ProjectID
	Name string // folder name, for people
	Path string // absolute, symlinks resolved
	Root *os.Root
	// Fingerprint identifies the root directory: device, inode and a stored random id
	// (shapes.md 2), 64 lowercase hex.
	Fingerprint string
	Git         bool // a .git entry lies in the root
}
