package mcp

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/access"
)

// Files of the data directory that hold the local owner's access.
const (
	// TokenFile holds the bearer token and nothing else, so that a host's configuration can
	// read it with cat.
	TokenFile = "token"
	// ownerFile holds the random id of the local owner: authority must outlive the token.
	ownerFile = "owner"
)

var (
	tokenForm = regexp.MustCompile(`^wcx_[A-Za-z0-9_-]{43}$`)
	ownerForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// Access is who may come in: the local owner, with the bearer token of the data directory and
// every project scope, and the second principals of the log. There is no open mode.
type Access struct {
	token     string
	digest    [sha256.Size]byte
	principal call.Principal
	second    *Second // nil: nobody but the owner
}

// OpenAccess reads the access of a data directory, or makes it at the first start; fresh tells
// that no Session is in its log. The caller holds the directory's lock. Errors: a file of the
// wrong form or with rights for others; a lost owner file, since with a new owner every Session
// in the log would be closed to its own person.
func OpenAccess(dir string, fresh bool) (*Access, error) {
	mint := event.NewNonce
	if !fresh {
		mint = nil
	}
	owner, err := readOrMake(filepath.Join(dir, ownerFile), ownerForm, mint)
	if err != nil {
		return nil, err
	}
	token, err := readOrMake(filepath.Join(dir, TokenFile), tokenForm, access.NewToken)
	if err != nil {
		return nil, err
	}
	return newAccess(token, owner), nil
}

// ReadToken reads the token for a client of this machine. Errors: fs.ErrNotExist where no
// server has run yet; a file of the wrong form or with rights for others.
func ReadToken(dir string) (string, error) {
	return readSecret(filepath.Join(dir, TokenFile), tokenForm)
}

// CheckOwner says what is wrong with the owner file of a data directory that is in use,
// without making one.
func CheckOwner(dir string) error {
	_, err := readSecret(filepath.Join(dir, ownerFile), ownerForm)
	return err
}

func newAccess(token, owner string) *Access {
	all := map[call.Scope]bool{}
	for _, s := range []call.Scope{call.ScopeRuntimeRead, call.ScopeProjectRead, call.ScopeProjectWrite,
		call.ScopeJobRun, call.ScopeJobDetach, call.ScopeCollaborate} {
		all[s] = true
	}
	return &Access{token: token, digest: sha256.Sum256([]byte(token)),
		principal: call.Principal{Actor: ownerActor(owner), Scopes: all, Owner: true}}
}

func ownerActor(owner string) event.Actor {
	return event.Actor{Authority: access.AuthorityFingerprint(access.GroupLocal, owner),
		Principal: access.PrincipalFingerprint(access.GroupLocal, owner), Credential: "owner"}
}

// ReadOwner gives the local owner of a data directory, for our own commands that write to its
// log. Errors: as CheckOwner.
func ReadOwner(dir string) (event.Actor, error) {
	owner, err := readSecret(filepath.Join(dir, ownerFile), ownerForm)
	if err != nil {
		return event.Actor{}, err
	}
	return ownerActor(owner), nil
}

// Token is the bearer token, for the ready block.
func (a *Access) Token() string { return a.token }

// Principal is the local owner.
func (a *Access) Principal() call.Principal { return a.principal }

// check compares in constant time, whatever the length of what was presented.
func (a *Access) check(presented string) bool {
	d := sha256.Sum256([]byte(presented))
	return subtle.ConstantTimeCompare(d[:], a.digest[:]) == 1
}

// readOrMake reads a secret, or mints it where there is none; without a mint that is an error.
func readOrMake(path string, form *regexp.Regexp, mint func() string) (string, error) {
	s, err := readSecret(path, form)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if mint == nil {
		return "", fault.New(fault.Unavailable, "the %s file is missing from the data directory, and the Sessions in its log belong to who it names",
			filepath.Base(path)).WithNext(putBack)
	}
	s = mint()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "the %s file cannot be created in the data directory", filepath.Base(path))
	}
	_, err = f.WriteString(s + "\n")
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(path)
		return "", fault.Wrap(err, fault.Unavailable, "the %s file cannot be written", filepath.Base(path))
	}
	return s, nil
}

// putBack is what helps with an owner file: a new one is another owner.
const putBack = "put the file back from a copy of the data directory, or start with another directory (--data)"

// repair is the step that gets a usable file again.
func repair(name string) string {
	if name == ownerFile {
		return putBack
	}
	return "remove it to get a new one at the next start; Sessions stay with the owner file"
}

// readSecret fails closed: a secret that others may read or that has another form is not used.
func readSecret(path string, form *regexp.Regexp) (string, error) {
	name := filepath.Base(path)
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return "", fault.New(fault.Unavailable, "others may read the %s file in the data directory, so it is not used", name).
			WithNext("chmod 600 it, or %s", repair(name))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "the %s file cannot be read", name)
	}
	s := strings.TrimSpace(string(b))
	if !form.MatchString(s) {
		return "", fault.New(fault.Unavailable, "the %s file in the data directory does not hold what this program wrote", name).
			WithNext("%s", repair(name))
	}
	return s, nil
}
