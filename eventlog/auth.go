package eventlog

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// replyTime is how long a connection may answer a request it was sent.
const replyTime = 10 * time.Minute

// grant is what one key may do. Permissions are never nil: the server takes nil for all.
type grant struct {
	name    string
	account string
	perms   *server.Permissions
}

// authority checks every connection of the embedded server: a nonce signed with a key that
// was made in this process and never leaves it. It keeps no key on disk.
type authority struct {
	server *server.Server // set before the server starts
	log    *slog.Logger
	mu     sync.RWMutex
	grants map[string]grant // by public key
}

func newAuthority(log *slog.Logger) *authority {
	return &authority{log: log, grants: map[string]grant{}}
}

// Check implements server.Authentication. It fails closed.
func (a *authority) Check(c server.ClientAuthentication) bool {
	if c.Kind() != server.CLIENT {
		return false
	}
	o := c.GetOpts()
	a.mu.RLock()
	g, ok := a.grants[o.Nkey]
	a.mu.RUnlock()
	if !ok || g.perms == nil {
		return false
	}
	sig, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(o.Nkey)
	if err != nil || key.Verify(c.GetNonce(), sig) != nil {
		return false
	}
	acc, err := a.server.LookupAccount(g.account)
	if err != nil {
		return false
	}
	c.RegisterUser(&server.User{Username: g.name, Account: acc, Permissions: g.perms})
	return true
}

// connect makes a key for the grant and an in-process connection that proves it.
func (a *authority) connect(g grant, opts ...nats.Option) (*nats.Conn, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	a.mu.Lock()
	a.grants[public] = g
	a.mu.Unlock()
	all := append([]nats.Option{
		nats.InProcessServer(a.server), nats.Name(g.name), nats.Nkey(public, key.Sign),
		nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.Timeout(readTimeout),
		// The library's own handler prints, and standard output may belong to MCP.
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			a.log.Warn("bus", slog.String("connection", g.name), slog.Any("error", err))
		}),
	}, opts...)
	nc, err := nats.Connect("", all...)
	if err != nil {
		return nil, fmt.Errorf("connect in process: %w", err)
	}
	return nc, nil
}

// everything within one account, for the server's own connections.
func everything() *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{">"}},
		Subscribe: &server.SubjectPermission{Allow: []string{">"}},
	}
}
