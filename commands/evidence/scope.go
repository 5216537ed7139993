package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// Parser kinds (wire.ProcessIn.Parser), and the one of a run of which only the exit status is
// read: it counts no tests.
const (
	ParserNone       = "none"
	ParserGoJSON     = "go-json"
	ParserCargo      = "cargo"
	ParserCargoCheck = "cargo-check"
	ParserRustfmt    = "rustfmt"
	ParserGoVet      = "go-vet"
	ParserTAP        = "tap"
	ParserJUnit      = "junit"
	// ParserVersion of all of them until a Runner says another.
	ParserVersion = 1
)

// KindNPM is the kind of a validation whose program may or may not tell its tests.
const KindNPM = "npm_test"

// CountsTests reports whether a parser's runs are of tests; of all others the exit status alone
// says whether they passed.
func CountsTests(parser string) bool {
	switch parser {
	case ParserNone, ParserCargoCheck, ParserRustfmt, ParserGoVet:
		return false
	}
	return true
}

// Scope is what a run covers, normalised: the same files, tests and settings give the same
// scope. Requests like min_tests are no part of it (VAL-14).
type Scope struct {
	Project  string   `json:"project"`
	Tool     string   `json:"tool"`
	Cwd      string   `json:"cwd"`
	Packages []string `json:"packages"`
	Features []string `json:"features,omitempty"`
	Flags    []string `json:"flags,omitempty"`
	Filter   string   `json:"filter,omitempty"`
	// Command stands for the text of a command: a digest with the server's key, so that what is
	// stored of it tells nothing about the text.
	Command string `json:"command,omitempty"`
}

// Domains of the two hashes.
const (
	targetDomain = "webcodex.validation-target.v1"
	scopeDomain  = "webcodex.validation-scope.v1"
)

// Of names the scope for one tool, purpose and parser (VAL-03, VAL-22, VAL-23). The target
// leaves the purpose out, the scope identity has it (VAL-19).
func (s Scope) Of(purpose, parser string) *event.ValidationScope {
	return &event.ValidationScope{Kind: s.Tool, TargetID: s.target(), Scope: s.identity(purpose), Parser: parser, ParserVer: ParserVersion}
}

func (s Scope) target() string {
	return session.TargetPrefix + s.normal().hash(targetDomain, "")[:session.TargetHexes]
}

func (s Scope) identity(purpose string) string {
	return session.ScopePrefix + s.normal().hash(scopeDomain, purpose)
}

func (s Scope) normal() Scope {
	s.Packages, s.Features = sorted(s.Packages), sorted(s.Features)
	return s
}

func (s Scope) hash(domain, purpose string) string {
	body, _ := json.Marshal(struct {
		Domain  string `json:"domain"`
		Scope   Scope  `json:"scope"`
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

// Cwd gives equal directories one name, the root the empty one: a run and its repetition from
// the evidence have one identity.
func Cwd(cwd string) string {
	if c := path.Clean(cwd); c != "." {
		return c
	}
	return ""
}

// Validating reports whether a run with that purpose is kept as validation evidence.
func Validating(purpose string) bool { return purpose == "validation" || purpose == "test" }
