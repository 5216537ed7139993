package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"webcodex/runner/wire"
)

// projectsFile is what the owner's projects file says. Its paths are absolute.
type projectsFile struct {
	AllowedRoots []string       `toml:"allowed_roots"`
	Projects     []ownedProject `toml:"project"`
}

// ownedProject is one [[project]] of it.
type ownedProject struct {
	Path string `toml:"path"`
	Name string `toml:"name"`
}

// readProjectsFile reads the owner's file; one that is not there names nothing. Its errors name
// keys and lines, and no values: they are for the Runner's own log.
func readProjectsFile(path string) (projectsFile, error) {
	none := projectsFile{}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for its writer
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, errors.New("it cannot be opened")
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return none, errors.New("it cannot be looked at")
	case !info.Mode().IsRegular():
		return none, errors.New("it is no regular file")
	case info.Mode().Perm()&0o022 != 0:
		return none, errors.New("others may write it: chmod go-w")
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxProjectsFile+1))
	switch {
	case err != nil:
		return none, errors.New("it cannot be read")
	case len(raw) > maxProjectsFile:
		return none, fmt.Errorf("it has more than %d bytes", maxProjectsFile)
	}
	return parseProjectsFile(string(raw))
}

func parseProjectsFile(text string) (projectsFile, error) {
	var file projectsFile
	meta, err := toml.Decode(text, &file)
	if err != nil {
		var p toml.ParseError
		if errors.As(err, &p) {
			return projectsFile{}, fmt.Errorf("line %d is no TOML or has a value of another kind", p.Position.Line)
		}
		return projectsFile{}, errors.New("a value is of another kind")
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		return projectsFile{}, fmt.Errorf("%s is no key of it", extra[0])
	}
	if file.AllowedRoots, err = CheckAllowedRoots(file.AllowedRoots); err != nil {
		return projectsFile{}, fmt.Errorf("allowed_roots: %w", err)
	}
	if len(file.Projects) > wire.MaxProjects {
		return projectsFile{}, fmt.Errorf("there are more than %d projects", wire.MaxProjects)
	}
	for i := range file.Projects {
		p := &file.Projects[i]
		if p.Path, err = ownerPath(p.Path); err != nil {
			return projectsFile{}, fmt.Errorf("project %d: path: %w", i+1, err)
		}
		if wire.CheckProjectName(p.Name) != nil {
			return projectsFile{}, fmt.Errorf("project %d: name is one line of at most %d characters", i+1, wire.MaxProjectName)
		}
	}
	return file, nil
}

// CheckAllowedRoots makes paths as an owner writes them whole: each is absolute, or begins with ~/.
// Errors are for the owner and name no path.
func CheckAllowedRoots(paths []string) ([]string, error) {
	if len(paths) > maxAllowed {
		return nil, fmt.Errorf("there are more than %d", maxAllowed)
	}
	out := make([]string, 0, len(paths))
	for i, p := range paths {
		p, err := ownerPath(p)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// ownerPath is a path as the owner writes it: absolute, or below the home directory with ~/.
func ownerPath(path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("there is no home directory for ~")
		}
		path = filepath.Join(home, path[1:])
	}
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", errors.New("a path is absolute, or begins with ~/")
	}
	return filepath.Clean(path), nil
}

// stamp tells whether a file may have changed.
type stamp struct {
	there bool
	size  int64
	at    time.Time
	info  fs.FileInfo
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{there: true, size: info.Size(), at: info.ModTime(), info: info}
}

func (s stamp) same(o stamp) bool {
	return s.there == o.there && s.size == o.size && s.at.Equal(o.at) && (!s.there || os.SameFile(s.info, o.info))
}
