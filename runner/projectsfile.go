package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"webcodex/internal/ownerfile"
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
	text, err := ownerfile.Read(path, maxProjectsFile)
	if err != nil {
		return projectsFile{}, err
	}
	return parseProjectsFile(text)
}

func parseProjectsFile(text string) (projectsFile, error) {
	var file projectsFile
	err := ownerfile.Decode(text, &file)
	if err != nil {
		return projectsFile{}, err
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
