package ssh

import (
	"context"
	"errors"
	"net"

	"golang.org/x/crypto/ssh"
)

// dialError is a failure on the way to a resource.
type dialError struct {
	reason string
	jump   bool
	cause  error
}

func (e *dialError) Error() string { return e.reason }
func (e *dialError) Unwrap() error { return e.cause }

// dial connects to a target, hop after hop; each host is checked against the known hosts. ctx
// bounds all of it. close ends every hop.
func dial(ctx context.Context, t target, agentSocket string) (client *ssh.Client, closeAll func(), err error) {
	var open []*ssh.Client
	closeAll = func() {
		for i := len(open) - 1; i >= 0; i-- {
			_ = open[i].Close()
		}
	}
	for i, hop := range t.hops {
		next, err := dialHop(ctx, client, hop, agentSocket)
		if err != nil {
			closeAll()
			var d *dialError
			if !errors.As(err, &d) {
				d = &dialError{reason: reasonOf(err, ctx.Err() != nil), cause: err}
			}
			d.jump = i < len(t.hops)-1
			return nil, nil, d
		}
		client, open = next, append(open, next)
	}
	return client, closeAll, nil
}

// dialHop connects to one host, through the client before it where there is one.
func dialHop(ctx context.Context, through *ssh.Client, r resource, agentSocket string) (*ssh.Client, error) {
	id, err := knownIdentity(r.KnownHosts, r.address())
	if err != nil {
		return nil, err
	}
	keys, done, err := signers(ctx, r, agentSocket)
	if err != nil {
		return nil, err
	}
	defer done()
	var conn net.Conn
	if through == nil {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp", r.address())
	} else {
		conn, err = through.DialContext(ctx, "tcp", r.address())
	}
	if err != nil {
		reason := "unreachable"
		if ctx.Err() != nil {
			reason = "connect_timeout"
		}
		return nil, &dialError{reason: reason, cause: err}
	}
	// A connection through a channel knows no deadlines.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, r.address(), &ssh.ClientConfig{
		User:              r.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(keys...)},
		HostKeyCallback:   id.verify,
		HostKeyAlgorithms: id.algorithms(),
		ClientVersion:     "SSH-2.0-webcodex",
	})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}
