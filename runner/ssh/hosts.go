package ssh

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Why a host was not trusted. Each fails before anything is sent that a wrong host could use.
var (
	errHostUnknown = errors.New("no key of this host is known")
	errHostChanged = errors.New("the host shows another key than the known one")
	errHostType    = errors.New("the host has no key of the types that are known")
	errHostRevoked = errors.New("the host shows a key that was revoked")
	errHostFile    = errors.New("the known hosts cannot be read")
)

// identity is what the operator's known hosts say about one address.
type identity struct {
	keys  []ssh.PublicKey
	check ssh.HostKeyCallback
}

// knownIdentity looks an address up. Certificates of hosts are not taken: a line that names an
// authority is no key of a host. Errors: errHostUnknown, errHostFile.
func knownIdentity(files []string, address string) (*identity, error) {
	var there []string
	for _, f := range files {
		if _, err := os.Stat(f); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		there = append(there, f)
	}
	check, err := knownhosts.New(there...)
	if err != nil {
		return nil, errors.Join(errHostFile, err)
	}
	// No host has this key, so the answer lists those that it may have.
	probe, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil, err
	}
	id := &identity{check: check}
	var mismatch *knownhosts.KeyError
	if err := check(address, &net.TCPAddr{}, probe); !errors.As(err, &mismatch) {
		return nil, errors.Join(errHostFile, err)
	}
	for _, want := range mismatch.Want {
		if !authority(want) {
			id.keys = append(id.keys, want.Key)
		}
	}
	if len(id.keys) == 0 {
		return nil, errHostUnknown
	}
	return id, nil
}

// authority reports that a line holds the key of an authority. One that cannot be read is
// taken for one: it gives no trust.
func authority(k knownhosts.KnownKey) bool {
	raw, err := os.ReadFile(k.Filename)
	if err != nil {
		return true
	}
	lines := bytes.Split(raw, []byte("\n"))
	return k.Line > len(lines) || bytes.HasPrefix(bytes.TrimSpace(lines[k.Line-1]), []byte("@"))
}

// algorithms are those of the known keys, so that a host with several keys shows a known one.
func (i *identity) algorithms() []string {
	var out []string
	for _, k := range i.keys {
		algorithms := []string{k.Type()}
		if k.Type() == ssh.KeyAlgoRSA {
			algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256} // the third one signs with SHA-1
		}
		for _, a := range algorithms {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// verify is the callback of the handshake.
func (i *identity) verify(address string, remote net.Addr, key ssh.PublicKey) error {
	var revoked *knownhosts.RevokedError
	if err := i.check(address, remote, key); errors.As(err, &revoked) {
		return errHostRevoked
	}
	for _, k := range i.keys {
		if bytes.Equal(k.Marshal(), key.Marshal()) {
			return nil
		}
	}
	return errHostChanged
}

// handshakeReason is the word for what a handshake failed on.
func handshakeReason(err error) string {
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case errors.Is(err, errHostUnknown):
		return "host_unknown"
	case errors.Is(err, errHostChanged):
		return "host_key_changed"
	case errors.Is(err, errHostRevoked):
		return "host_key_revoked"
	case errors.Is(err, errHostFile):
		return "known_hosts_unreadable"
	case errors.Is(err, errHostType),
		errors.As(err, &negotiation) && strings.Contains(err.Error(), "host key"):
		return "host_key_type_unknown"
	// The library has no type for it, and servers hang up after too many keys.
	case strings.Contains(err.Error(), "unable to authenticate"), strings.Contains(err.Error(), "Too many authentication failures"):
		return "auth_refused"
	}
	return "handshake_failed"
}
