package ssh

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// keyError says in one word why there is no key to show.
type keyError struct {
	reason string
	cause  error
}

func (e *keyError) Error() string { return e.reason }
func (e *keyError) Unwrap() error { return e.cause }

// signers are the keys of a hop: those of its files, then those of the agent, at most maxKeys.
// done must be called when the handshake is over. Nothing is ever asked: a key with a passphrase
// belongs into the agent.
func signers(ctx context.Context, r resource, agentSocket string) (keys []ssh.Signer, done func(), err error) {
	done = func() {}
	for _, path := range r.IdentityFiles {
		key, err := keyOf(path)
		if err != nil {
			return nil, done, err
		}
		keys = append(keys, key)
	}
	if r.Agent {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", agentSocket)
		if err != nil {
			return nil, done, &keyError{"agent_unavailable", err}
		}
		done = func() { _ = conn.Close() }
		if at, ok := ctx.Deadline(); ok {
			_ = conn.SetDeadline(at)
		}
		held, err := agent.NewClient(conn).Signers()
		if err != nil {
			done()
			return nil, func() {}, &keyError{"agent_unavailable", err}
		}
		keys = append(keys, held...)
	}
	if len(keys) == 0 {
		done()
		return nil, func() {}, &keyError{"no_key", nil}
	}
	return keys[:min(len(keys), maxKeys)], done, nil
}

func keyOf(path string) (ssh.Signer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &keyError{"key_unreadable", err}
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return nil, &keyError{"key_unreadable", err}
	case info.Mode().Perm()&0o077 != 0:
		return nil, &keyError{"key_permissions", nil} // others may have read it
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, &keyError{"key_unreadable", err}
	}
	key, err := ssh.ParsePrivateKey(raw)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, &keyError{"key_encrypted", nil}
	case err != nil:
		return nil, &keyError{"key_unreadable", nil} // a parser's words could quote the key
	}
	return key, nil
}
