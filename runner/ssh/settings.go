package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"webcodex/internal/ownerfile"
)

// resource is one [ssh.resources.NAME] of the operator's file.
type resource struct {
	Host          string   `toml:"host" json:"host"`
	Port          int      `toml:"port" json:"port"`
	User          string   `toml:"user" json:"user"`
	IdentityFiles []string `toml:"identity_files" json:"identity_files"`
	// Agent asks the agent of the Runner's account for keys too. It is never forwarded.
	Agent       bool     `toml:"agent" json:"agent"`
	KnownHosts  []string `toml:"known_hosts" json:"known_hosts"`
	Jump        string   `toml:"jump" json:"jump"` // the resource that is passed on the way
	DefaultCwd  string   `toml:"default_cwd" json:"default_cwd"`
	Description string   `toml:"description" json:"-"`
}

func (r resource) address() string { return net.JoinHostPort(r.Host, strconv.Itoa(r.Port)) }

// target is a resource with the hosts on the way to it, first hop first.
type target struct {
	name       string
	hops       []resource
	generation string // changes with anything that leads there
}

func (t target) defaultCwd() string { return t.hops[len(t.hops)-1].DefaultCwd }

// settings are the resources of one state of the file.
type settings struct{ targets map[string]target }

// readSettings reads the operator's file; one that is not there has no resources. It names keys
// and not values in its errors: they are for the Runner's own log.
func readSettings(path, home string) (settings, error) {
	text, err := ownerfile.Read(path, maxFile)
	if err != nil {
		return settings{}, err
	}
	return parseSettings(text, home)
}

func parseSettings(text, home string) (settings, error) {
	var file struct {
		SSH struct {
			Resources map[string]resource `toml:"resources"`
		} `toml:"ssh"`
	}
	err := ownerfile.Decode(text, &file)
	if err != nil {
		return settings{}, err
	}
	all := file.SSH.Resources
	if len(all) > maxResources {
		return settings{}, fmt.Errorf("there are more than %d resources", maxResources)
	}
	for name, r := range all {
		if !ValidName(name) {
			return settings{}, fmt.Errorf("a resource's name is 1 to %d of letters, digits, _, . and -, without two dots in a row", MaxName)
		}
		if all[name], err = r.complete(home); err != nil {
			return settings{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	out := settings{targets: map[string]target{}}
	for name := range all {
		if out.targets[name], err = resolve(name, all); err != nil {
			return settings{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// ValidName reports that a resource may be called so (EXE-04).
func ValidName(name string) bool {
	if name == "" || len(name) > MaxName || strings.Contains(name, "..") {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_.-", c)
	})
}

// ValidCwd reports that a text may name a remote directory (EXE-07); empty is the default one.
func ValidCwd(cwd string) bool {
	return len(cwd) <= MaxCwd && !strings.ContainsFunc(cwd, unicode.IsControl)
}

// complete checks a resource and fills in what was left out.
func (r resource) complete(home string) (resource, error) {
	if r.Port == 0 {
		r.Port = 22
	}
	bad := func(s string) bool {
		return s == "" || strings.ContainsFunc(s, unicode.IsControl) || strings.ContainsAny(s, " /")
	}
	switch {
	case bad(r.Host) || len(r.Host) > 255:
		return r, errors.New("host is missing or none")
	case bad(r.User) || len(r.User) > 255:
		return r, errors.New("user is missing or none")
	case r.Port < 1 || r.Port > 65535:
		return r, errors.New("port is none")
	case !ValidCwd(r.DefaultCwd):
		return r, errors.New("default_cwd is none")
	case len(r.IdentityFiles) > maxKeys:
		return r, fmt.Errorf("there are more than %d identity_files", maxKeys)
	case len(r.IdentityFiles) == 0 && !r.Agent:
		return r, errors.New("there are neither identity_files nor agent = true")
	}
	if len(r.KnownHosts) == 0 {
		r.KnownHosts = []string{"~/.ssh/known_hosts"}
	}
	for _, list := range []*[]string{&r.KnownHosts, &r.IdentityFiles} {
		*list = slices.Clone(*list)
		for i, path := range *list {
			if rest, ok := strings.CutPrefix(path, "~/"); ok {
				path = filepath.Join(home, rest)
			}
			if !filepath.IsAbs(path) {
				return r, errors.New("a file is named by an absolute path or one that begins with ~/")
			}
			(*list)[i] = path
		}
	}
	return r, nil
}

// resolve follows the jumps of a resource.
func resolve(name string, all map[string]resource) (target, error) {
	t := target{name: name}
	for next := name; next != ""; next = t.hops[0].Jump {
		r, ok := all[next]
		if !ok {
			return t, errors.New("jump names no resource")
		}
		if len(t.hops) == maxHops {
			return t, fmt.Errorf("there are more than %d hosts on the way, or they lead in a circle", maxHops)
		}
		t.hops = slices.Insert(t.hops, 0, r)
	}
	body, err := json.Marshal(t.hops)
	if err != nil {
		return t, err
	}
	sum := sha256.Sum256(body)
	t.generation = hex.EncodeToString(sum[:])
	return t, nil
}
