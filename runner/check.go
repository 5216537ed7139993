package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
)

// CheckProjects tells whether the list of Projects in a Runner's directory can be read; one
// that is not there yet can. It changes nothing.
func CheckProjects(dir string) error {
	_, err := openRegistry(dir, nil)
	return err
}

// CheckJournal tells whether the journal in a Runner's directory is sound; one that is not there
// yet is. It changes nothing and takes no lock. Errors: fault log_damaged where the next start
// will set it aside, unavailable where it cannot be read.
func CheckJournal(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "journal", logName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.Wrap(err, fault.Unavailable, "the Runner's journal cannot be read")
	case !parseJournal(raw, proc.BootID()).sound:
		return fault.New(fault.LogDamaged, "the Runner's journal is damaged").
			WithNext("keep a copy if you want to look at it; the next start sets it aside, and what was open gets an unknown outcome")
	}
	return nil
}

// DamagedJournals names the files in a Runner's directory that were set aside because they were
// damaged, oldest first: at most maxAside. They are there until a person removes them.
func DamagedJournals(dir string) []string {
	var out []string
	for n := 1; n <= maxAside; n++ {
		if _, err := os.Lstat(filepath.Join(dir, "journal", asideName(n))); err == nil {
			out = append(out, "runner/journal/"+asideName(n))
		}
	}
	return out
}
