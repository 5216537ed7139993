package files

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"webcodex/runner"
)

// A transaction is written down in the Runner's directory before it touches the Project, so
// that a life that was killed in the middle leaves nothing there: the next one takes the
// change back, or finishes it where all of it was made. A note is JSON lines: noteHead before
// anything is staged, noteStaged after that, noteCommitted when every step is made; it is
// gone when the transaction is. It holds names and no content.
const noteVersion = 1

// noteHead says what a transaction will do.
type noteHead struct {
	Version int        `json:"version"`
	Project string     `json:"project"`
	Root    string     `json:"root"` // the Project's fingerprint
	Steps   []stepNote `json:"steps"`
}

// noteStaged tells the new files from everybody else's, step by step.
type noteStaged struct {
	Staged []identity `json:"staged"`
}

// noteCommitted says that the change is made.
type noteCommitted struct {
	Committed bool `json:"committed"`
}

// Kinds of a stepNote.
const (
	noteReplace = "replace"
	noteCreate  = "create"
	noteRemove  = "remove"
	noteRename  = "rename"
)

// stepNote is one action before it begins.
type stepNote struct {
	Kind   string   `json:"kind"`
	At     spot     `json:"at"`
	To     *spot    `json:"to,omitempty"`
	Temp   string   `json:"temp,omitempty"`
	Backup string   `json:"backup,omitempty"`
	Moved  identity `json:"moved,omitzero"`
}

// spot is a place in a note. Names are bytes: nothing says that they are UTF-8.
type spot struct {
	Path []byte `json:"path"` // project-relative, links resolved
	// Missing directories before the last name are made by the step.
	Missing int `json:"missing,omitempty"`
}

func spotOf(p place) spot { return spot{Path: []byte(p.path), Missing: len(p.missing)} }

// notebook keeps the notes of transactions in progress, of this life and of dead ones.
type notebook struct {
	dir  string
	sync bool // durable against a power cut
}

// note is one transaction's.
type note struct {
	path string
	file *os.File
	sync bool
}

// begin writes down what the steps will do.
func (b *notebook) begin(p *runner.Project, steps []step) (*note, error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	var name [16]byte
	rand.Read(name[:])
	n := &note{path: filepath.Join(b.dir, hex.EncodeToString(name[:])), sync: b.sync}
	var err error
	if n.file, err = os.OpenFile(n.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	head := noteHead{Version: noteVersion, Project: string(p.ID), Root: p.Fingerprint}
	for _, st := range steps {
		head.Steps = append(head.Steps, st.note())
	}
	if err = n.add(head); err == nil && b.sync {
		err = syncPath(b.dir)
	}
	if err != nil {
		return nil, errors.Join(err, n.drop())
	}
	return n, nil
}

func (n *note) add(record any) error {
	b, err := json.Marshal(record)
	if err == nil {
		_, err = n.file.Write(append(b, '\n'))
	}
	if err == nil && n.sync {
		err = n.file.Sync()
	}
	return err
}

// staged adds what the new files are.
func (n *note) staged(steps []step) error {
	var s noteStaged
	for _, st := range steps {
		s.Staged = append(s.Staged, st.staged())
	}
	return n.add(s)
}

// committed adds that all is made.
func (n *note) committed() error { return n.add(noteCommitted{true}) }

// keep leaves the note for the next life.
func (n *note) keep() { n.file.Close() }

// drop is the end of a transaction that left nothing behind.
func (n *note) drop() error { return errors.Join(n.file.Close(), os.Remove(n.path)) }

func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// story is a note that was read.
type story struct {
	noteHead
	staged    []identity
	committed bool
}

// errUntold is a note that ends before its first line does: its life was over before it
// touched anything.
var errUntold = errors.New("the note is not finished")

func readStory(path string) (story, error) {
	f, err := os.Open(path)
	if err != nil {
		return story{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxNoteBytes))
	if err != nil {
		return story{}, err
	}
	var s story
	head, rest, whole := bytes.Cut(data, []byte("\n"))
	if !whole || json.Unmarshal(head, &s.noteHead) != nil {
		return story{}, errUntold
	}
	// What comes after may be torn: then it was not yet so.
	line, rest, whole := bytes.Cut(rest, []byte("\n"))
	var staged noteStaged
	if whole && json.Unmarshal(line, &staged) == nil && len(staged.Staged) == len(s.Steps) {
		s.staged = staged.Staged
	}
	line, _, whole = bytes.Cut(rest, []byte("\n"))
	var end noteCommitted
	s.committed = whole && json.Unmarshal(line, &end) == nil && end.Committed
	return s, nil
}

// all gives the notes' paths, newest first, and removes the oldest beyond maxNotes: Projects
// that never come back leave theirs for ever.
func (b *notebook) all() ([]string, error) {
	entries, err := os.ReadDir(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	type aged struct {
		path string
		at   int64
	}
	var list []aged
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			list = append(list, aged{filepath.Join(b.dir, e.Name()), info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(list, func(a, b aged) int {
		switch {
		case a.at > b.at:
			return -1
		case a.at < b.at:
			return 1
		}
		return strings.Compare(a.path, b.path)
	})
	var paths []string
	for i, a := range list {
		if i >= maxNotes {
			_ = os.Remove(a.path)
			continue
		}
		paths = append(paths, a.path)
	}
	return paths, nil
}
