package validate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
)

// scope is what a run covers, normalised: the same files, tests and settings give the same
// scope. Requests like min_tests are no part of it (VAL-14).
type scope struct {
	Project  string   `json:"project"`
	Tool     string   `json:"tool"`
	Cwd      string   `json:"cwd"`
	Packages []string `json:"packages"`
	Features []string `json:"features,omitempty"`
	Flags    []string `json:"flags,omitempty"`
	Filter   string   `json:"filter,omitempty"`
}

// Domains of the two hashes.
const (
	targetDomain = "webcodex.validation-target.v1"
	scopeDomain  = "webcodex.validation-scope.v1"
)

func (s scope) normal() scope {
	s.Packages, s.Features = sorted(s.Packages), sorted(s.Features)
	return s
}

// target names what is validated, opaquely (VAL-03).
func (s scope) target() string { return "target:" + s.normal().hash(targetDomain, "")[:24] }

// identity tells comparable runs, opaquely (VAL-22, VAL-23); purpose belongs to it (VAL-19).
func (s scope) identity(purpose string) string {
	return "validation_scope:v1:" + s.normal().hash(scopeDomain, purpose)
}

func (s scope) hash(domain, purpose string) string {
	body, _ := json.Marshal(struct {
		Domain  string `json:"domain"`
		Scope   scope  `json:"scope"`
		Purpose string `json:"purpose,omitempty"`
	}{domain, s, purpose})
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}

// cleanCwd gives equal directories one name, the root the empty one: a run and its repetition
// from the evidence have one identity.
func cleanCwd(cwd string) string {
	if c := path.Clean(cwd); c != "." {
		return c
	}
	return ""
}
