package shell

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
)

// notes is a directory that remembers, for the next life of the Runner, the shells of this one and
// where their pipes were: a killed Runner leaves them (SHL-27). What was run is not in it.
type notes struct {
	dir   string // empty: nothing is remembered
	pipes string // the directory for named pipes; empty: not made yet
	guard guard
}

// guard ends what is held where this process dies without a word.
type guard interface {
	Hold(proc.Leftover)
	Drop(mark string)
}

// note is one shell's.
type note struct {
	Boot   string        `json:"boot"`
	Leader proc.Identity `json:"leader"`
}

const pipesPrefix = "webcodex-shells-"

// openNotes ends what an earlier life has left, and names what could not be ended.
func openNotes(dir string) (notes, []string) {
	n := notes{dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return n, nil
	}
	var left []proc.Leftover
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if id := event.ShellID(e.Name()); id.Valid() {
			var of note
			if json.Unmarshal(raw, &of) == nil && of.Boot == proc.BootID() {
				left = append(left, proc.Leftover{Mark: string(id), Leader: of.Leader})
			}
		} else if path := string(raw); e.Name() == "pipes" && strings.HasPrefix(filepath.Base(path), pipesPrefix) && filepath.IsAbs(path) {
			_ = os.RemoveAll(path)
		}
		defer func() { _ = os.Remove(file) }()
	}
	alive, _ := proc.EndLeftovers(left)
	return n, alive
}

// place is the directory for named pipes, made when it is needed or was taken away.
func (n *notes) place() (string, error) {
	if _, err := os.Stat(n.pipes); n.pipes != "" && err == nil {
		return n.pipes, nil
	}
	path, err := os.MkdirTemp("", pipesPrefix)
	if err != nil {
		return "", err
	}
	n.pipes = path
	return path, n.write("pipes", []byte(path))
}

func (n *notes) write(name string, body []byte) error {
	if n.dir == "" {
		return nil
	}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.dir, name), body, 0o600)
}

// add remembers a shell: before its start by its mark alone, then with its leader.
func (n *notes) add(id event.ShellID, leader proc.Identity) error {
	if n.guard != nil {
		n.guard.Hold(proc.Leftover{Mark: string(id), Leader: leader})
	}
	body, err := json.Marshal(note{Boot: proc.BootID(), Leader: leader})
	if err != nil {
		return err
	}
	return n.write(string(id), body)
}

func (n *notes) remove(id event.ShellID) {
	if n.guard != nil {
		n.guard.Drop(string(id))
	}
	if n.dir != "" {
		_ = os.Remove(filepath.Join(n.dir, string(id)))
	}
}

func (n *notes) close() {
	if n.pipes != "" {
		_ = os.RemoveAll(n.pipes)
	}
	if n.dir != "" {
		_ = os.Remove(filepath.Join(n.dir, "pipes"))
	}
}
