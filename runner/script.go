package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// interpreter runs a script file; the first of its programs that is there is used.
type interpreter struct {
	programs  []string
	arguments []string
	extension string
}

var interpreters = map[string]*interpreter{
	"sh":         {programs: []string{"sh"}, extension: ".sh"},
	"bash":       {programs: []string{"bash"}, extension: ".bash"},
	"python":     {programs: []string{"python3", "python"}, extension: ".py"},
	"node":       {programs: []string{"node"}, extension: ".cjs"},
	"powershell": {programs: []string{"pwsh"}, arguments: []string{"-NoProfile", "-NonInteractive", "-File"}, extension: ".ps1"},
}

// form fills in what is executed. clean must be called when it has ended.
func (r *Runner) form(c *proc.Command, op wire.Op, in wire.ProcessIn) (clean func(), f *fault.Error) {
	clean = func() {}
	switch op {
	case wire.OpShell:
		// A text that begins with a dash is a command too, no option.
		c.Executable, c.Args = in.Shell, []string{"-c", "--", in.Command}
	case wire.OpScript:
		i := interpreters[in.Language]
		file, err := r.scripts.write(in.Script, i.extension)
		if err != nil {
			return clean, fault.Wrap(err, fault.CommandSpawnFailed, "the script could not be put into a file").WithReason(proc.NoResources)
		}
		clean = func() { _ = os.Remove(file) }
		c.Executable = i.programs[0]
		for _, name := range i.programs {
			if proc.Runnable(name, c.Env) {
				c.Executable = name
				break
			}
		}
		c.Args = append(append(append([]string{}, i.arguments...), file), in.Args...)
	default:
		c.Executable, c.Args = in.Executable, in.Args
	}
	return clean, nil
}

// scriptDir is a private directory for script files, outside the data directory: command text
// never lies there. It is remembered so that the next life can remove what a killed one left.
type scriptDir struct {
	note string

	mu   sync.Mutex
	path string
}

func (s *scriptDir) open(dir string) error {
	s.note = filepath.Join(dir, "scripts")
	old, err := os.ReadFile(s.note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Only a directory that carries our own name is removed, whatever the note says.
	if path := string(old); strings.HasPrefix(filepath.Base(path), scriptPrefix) && filepath.IsAbs(path) {
		_ = os.RemoveAll(path)
	}
	return s.make()
}

func (s *scriptDir) make() (err error) {
	if s.path, err = os.MkdirTemp("", scriptPrefix); err != nil {
		return err
	}
	return replaceFile(s.note, []byte(s.path))
}

const scriptPrefix = "webcodex-scripts-"

// write puts a script into a file. A directory that a cleaner of old files took is made anew,
// under another name: somebody else may have the old one by now.
func (s *scriptDir) write(text, extension string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.CreateTemp(s.path, "script-*"+extension)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.make(); err == nil {
			f, err = os.CreateTemp(s.path, "script-*"+extension)
		}
	}
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func (s *scriptDir) close() {
	if s.path != "" {
		_ = os.RemoveAll(s.path)
		_ = os.Remove(s.note)
	}
}
