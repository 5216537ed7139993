package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"webcodex/eventlog"
	"webcodex/internal/fault"
)

// A backup is a directory of these files. The manifest is written last: without it the rest is
// nothing.
const (
	manifestFile = "manifest.json"
	copyLog      = "log.jsonl" // the stored body of every commit, one a line, in the log's order
	backupFormat = 1
	maxManifest  = 64 << 10
	maxSmallFile = 4 << 20
)

// projectsFile is the Runner's list of Projects: without it each would get a new name.
const projectsFile = "runner/projects.json"

// projectsCopy is its name in a backup.
const projectsCopy = "projects.json"

// smallFiles are copied beside the log: who the owner is, and what the data directory remembers
// for good. Neither token nor key is among them (faults.md 4).
var smallFiles = []struct {
	path, copy string
	required   bool
}{
	{"owner", "owner", true},
	{settingsFile, "settings.json", true},
	{projectsFile, projectsCopy, false},
}

func smallNames() (out []string) {
	for _, f := range smallFiles {
		out = append(out, f.copy)
	}
	return out
}

// manifest describes a backup.
type manifest struct {
	Format  int    `json:"format"`
	Program string `json:"program"`
	At      string `json:"created_at"`
	eventlog.Span
	Commits uint64       `json:"commits"`
	Files   []copiedFile `json:"files"`
	// Sum is the SHA-256 of the manifest without it, so that a flipped bit is found here too.
	Sum string `json:"sum"`
}

// copiedFile is one file of a backup.
type copiedFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func (m manifest) sum() string {
	m.Sum = ""
	body, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:])
}

func (m manifest) bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

func (m manifest) file(name string) (copiedFile, bool) {
	for _, f := range m.Files {
		if f.Name == name {
			return f, true
		}
	}
	return copiedFile{}, false
}

// readManifest reads and checks the manifest of a backup.
func readManifest(dir string) (manifest, error) {
	var m manifest
	body, err := os.ReadFile(filepath.Join(dir, manifestFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return m, failf(exitFailed, "this is no backup, or one that was not finished: it has no %s", manifestFile)
	case err != nil:
		return m, failf(exitFailed, "the backup cannot be read: %v", short(err))
	case len(body) > maxManifest || json.Unmarshal(body, &m) != nil:
		return m, damagedBackup(manifestFile)
	case m.Format > backupFormat:
		return m, failf(exitFailed, "the backup has format %d and this program knows %d: use the newer webcodex that wrote it", m.Format, backupFormat)
	case m.Format != backupFormat || m.Sum == "" || m.Sum != m.sum() || m.First == 0 || m.Last < m.First:
		return m, damagedBackup(manifestFile)
	}
	names := map[string]bool{copyLog: true}
	for _, f := range smallFiles {
		names[f.copy] = true
	}
	for _, f := range m.Files {
		if !names[f.Name] || f.Bytes < 0 {
			return m, damagedBackup(manifestFile)
		}
		delete(names, f.Name)
	}
	for _, f := range smallFiles {
		if f.required && names[f.copy] {
			return m, damagedBackup(manifestFile)
		}
	}
	if names[copyLog] {
		return m, damagedBackup(manifestFile)
	}
	return m, nil
}

func damagedBackup(name string) error {
	return failf(exitFailed, "the backup is damaged: %s is not what was written; use another backup", name)
}

// readCopy gives a file of a backup to fn, and refuses one whose bytes are not those of the
// manifest. Fn sees the bytes before that is known: what it makes of them is to be thrown away
// when there is an error.
func readCopy(dir string, want copiedFile, fn func(io.Reader) error) error {
	f, err := os.OpenFile(filepath.Join(dir, want.Name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return damagedBackup(want.Name)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != want.Bytes {
		return damagedBackup(want.Name)
	}
	sum := newSummer(io.Discard)
	all := io.TeeReader(f, sum)
	failed := fn(all)
	if failed != nil && fault.KindOf(failed) != fault.LogDamaged {
		return failed
	}
	if _, err := io.Copy(io.Discard, all); err != nil || sum.file(want.Name) != want {
		return damagedBackup(want.Name) // which explains what else was found in it
	}
	return failed
}

// copyLines gives the lines of a copy of the log, one at a time, and io.EOF.
func copyLines(r io.Reader) func() ([]byte, error) {
	lines := bufio.NewReaderSize(r, maxBackupLine)
	return func() ([]byte, error) {
		line, err := lines.ReadSlice('\n')
		if err == nil {
			return line[:len(line)-1], nil
		}
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil, io.EOF
		}
		return nil, fault.New(fault.LogDamaged, "the copy of the log has a line that is no commit")
	}
}

// summer hashes what goes through it.
type summer struct {
	out io.Writer
	h   hash.Hash
	n   int64
}

func newSummer(out io.Writer) *summer { return &summer{out: out, h: sha256.New()} }

// Write hashes what was written.
func (s *summer) Write(p []byte) (int, error) {
	n, err := s.out.Write(p)
	s.h.Write(p[:n])
	s.n += int64(n)
	return n, err
}

func (s *summer) file(name string) copiedFile {
	return copiedFile{Name: name, Bytes: s.n, SHA256: hex.EncodeToString(s.h.Sum(nil))}
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
