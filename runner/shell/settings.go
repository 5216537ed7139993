package shell

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"webcodex/internal/ownerfile"
	"webcodex/internal/proc"
)

// profile is one [shell.profiles.NAME] of the operator's file: what shells are opened with.
type profile struct {
	name string
	// Dialect is sh, bash or powershell; empty: either of the first two.
	Dialect string `toml:"dialect"`
	// Program is run in its place; empty: the dialect's name.
	Program string            `toml:"program"`
	Env     map[string]string `toml:"env"`
	// PathPrepend comes before PATH.
	PathPrepend []string `toml:"path_prepend"`
	// Init is run once in each shell, before its first command (SHL-10).
	Init string `toml:"init_script"`
	// Projects are those whose shells it is for; none: those without another.
	Projects []string `toml:"projects"`
}

// settings are one state of the file. The zero value lets shells be, without a profile.
type settings struct {
	off      bool
	def      string
	profiles map[string]profile
}

// readSettings reads the operator's file; one that is not there, or has no name, says nothing. Its
// errors name keys and no values: they are for the Runner's own log.
func readSettings(path string) (settings, error) {
	text, err := ownerfile.Read(path, maxFile)
	if err != nil {
		return settings{}, err
	}
	return parseSettings(text)
}

func parseSettings(text string) (settings, error) {
	var file struct {
		Shell struct {
			Persistent *bool              `toml:"persistent"`
			Profile    string             `toml:"profile"`
			Profiles   map[string]profile `toml:"profiles"`
		} `toml:"shell"`
	}
	if err := ownerfile.Decode(text, &file); err != nil {
		return settings{}, err
	}
	s := settings{off: file.Shell.Persistent != nil && !*file.Shell.Persistent, def: file.Shell.Profile, profiles: file.Shell.Profiles}
	if len(s.profiles) > maxProfiles {
		return settings{}, fmt.Errorf("there are more than %d profiles", maxProfiles)
	}
	for name, p := range s.profiles {
		p.name = name
		if err := p.check(); err != nil {
			return settings{}, fmt.Errorf("a profile: %w", err)
		}
		s.profiles[name] = p
	}
	if _, there := s.profiles[s.def]; s.def != "" && !there {
		return settings{}, errors.New("profile names none")
	}
	return s, nil
}

var (
	nameForm     = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,80}$`)
	variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (p profile) check() error {
	bytes := 0
	for k, v := range p.Env {
		bytes += len(k) + len(v)
		if !variableForm.MatchString(k) || strings.ContainsRune(v, 0) {
			return errors.New("env has a name or a value that is none")
		}
		if k == proc.MarkVariable {
			return errors.New("env has a name that WebCodex uses itself")
		}
	}
	switch {
	case !nameForm.MatchString(p.name):
		return fmt.Errorf("a name is 1 to %d of letters, digits, _, . and -", maxName)
	case !slices.Contains([]string{"", "sh", "bash", powershell}, p.Dialect):
		return errors.New("dialect is sh, bash or powershell")
	case p.Program != "" && !filepath.IsAbs(p.Program):
		return errors.New("program is an absolute path")
	case p.Program != "" && p.Dialect == "":
		return errors.New("a program needs its dialect")
	case len(p.Env) > maxEnv || bytes > maxEnvBytes:
		return fmt.Errorf("env has more than %d variables or %d bytes", maxEnv, maxEnvBytes)
	case len(p.Init) > maxInit || strings.ContainsRune(p.Init, 0):
		return fmt.Errorf("init_script has more than %d bytes, or a NUL", maxInit)
	}
	for _, d := range p.PathPrepend {
		if !filepath.IsAbs(d) || strings.ContainsAny(d, ":\x00") {
			return errors.New("path_prepend has absolute directories")
		}
	}
	return nil
}

// profileOf is the profile for a Project's shells; one without a name has nothing.
func (s settings) profileOf(project string) profile {
	names := make([]string, 0, len(s.profiles))
	for name := range s.profiles {
		names = append(names, name)
	}
	slices.Sort(names) // the first of several
	for _, name := range names {
		if slices.Contains(s.profiles[name].Projects, project) {
			return s.profiles[name]
		}
	}
	return s.profiles[s.def]
}

// generation changes with anything that a shell of the profile is opened with.
func (p profile) generation() string {
	body, _ := json.Marshal(struct {
		Name string
		profile
	}{p.name, p})
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// environment is what a shell of the profile is started with.
func (p profile) environment(from []string, pwd string) []string {
	extra := []string{"PWD=" + pwd}
	for k, v := range p.Env {
		extra = append(extra, k+"="+v)
	}
	env := proc.Environment(from, extra)
	if len(p.PathPrepend) == 0 {
		return env
	}
	for i, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			env[i] = "PATH=" + strings.Join(append(slices.Clone(p.PathPrepend), path), ":")
			return env
		}
	}
	return append(env, "PATH="+strings.Join(p.PathPrepend, ":"))
}

// powershell is a dialect that no Runner of this build can run: it is built for Unix (SHL-03).
const powershell = "powershell"

// dialectOf is the dialect and the program of a shell on a system; false: they do not go together
// (SHL-08). asked is the caller's wish or the Session's; empty: none.
func dialectOf(system, asked string, p profile) (dialect, program string, ok bool) {
	switch {
	case system == "windows" || p.Dialect == powershell: // and sh or bash cannot be asked for there
		return "", "", false
	case asked != "" && p.Dialect != "" && asked != p.Dialect:
		return "", "", false // what the profile sets up is for another
	case asked != "":
		dialect = asked
	case p.Dialect != "":
		dialect = p.Dialect
	default:
		dialect = "sh"
	}
	if program = p.Program; program == "" {
		program = dialect
	}
	return dialect, program, true
}
