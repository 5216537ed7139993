package worktree

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"webcodex/eventlog/event"
)

// Steps of a note. There is none for what was taken back: the note goes with it.
const (
	stepCreating = "creating" // anything from nothing to all of it may be there
	stepReady    = "ready"    // whole, to be served
	stepReleased = "released" // whole, and its Project was unregistered
)

// note is one worktree in the Runner's directory: what it is of and how far it is. Paths are this
// machine's and never leave it.
type note struct {
	Version   int             `json:"version"`
	Operation string          `json:"operation"`
	Step      string          `json:"step"`
	Source    event.ProjectID `json:"source"`
	Root      string          `json:"source_root"` // the source's fingerprint
	From      string          `json:"source_path"`
	Common    string          `json:"common"` // git directory that both share
	Base      string          `json:"base_commit"`
	Path      string          `json:"path"`
	Filters   bool            `json:"filters_disabled,omitempty"`
	CreatedAt string          `json:"created_at"`
	// Project is what it is served as, once it was.
	Project event.ProjectID `json:"project,omitempty"`
}

const noteVersion = 1

// ledger is the notes in a directory, one file each.
type ledger struct {
	dir  string
	sync bool // durable against a power cut
}

var noteName = regexp.MustCompile(`^[0-9a-f]{32}\.json$`)

func (l ledger) file(operation string) string { return filepath.Join(l.dir, operation+".json") }

// find reads the note of an operation; ok false: there is none.
func (l ledger) find(operation string) (n note, ok bool, err error) {
	n, err = read(l.file(operation))
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, false, nil
	}
	return n, err == nil, err
}

// all reads every note, oldest first. One that cannot be read is left alone and told of.
func (l ledger) all() ([]note, error) {
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []note
	var failed error
	for _, e := range entries {
		if !noteName.MatchString(e.Name()) {
			continue
		}
		n, err := read(filepath.Join(l.dir, e.Name()))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b note) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
	return out, failed
}

func read(file string) (note, error) {
	f, err := os.Open(file)
	if err != nil {
		return note{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return note{}, err
	}
	var n note
	if err := json.Unmarshal(b, &n); err != nil {
		return note{}, err
	}
	if n.Version != noteVersion || n.Operation+".json" != filepath.Base(file) || !filepath.IsAbs(n.Path) || !filepath.IsAbs(n.Common) ||
		filepath.Base(filepath.Dir(n.Path)) != namespace {
		return note{}, errors.New("a note of a worktree says nothing that this version understands")
	}
	return n, nil
}

// put writes a note in one step.
func (l ledger) put(n note) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(n, "", " ")
	if err != nil {
		return err
	}
	tmp := l.file(n.Operation) + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil && l.sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, l.file(n.Operation))
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return l.flush()
}

// drop is the end of a note.
func (l ledger) drop(operation string) error {
	if err := os.Remove(l.file(operation)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.flush()
}

func (l ledger) flush() error {
	if !l.sync {
		return nil
	}
	d, err := os.Open(l.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
