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

	"webcodex/eventlog/event"
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
	// runners tells of keys from outside; nil: none is admitted.
	runners func(public string) (RunnerKey, bool)
	conns   map[string][]uint64 // connections of a user from outside
}

func newAuthority(log *slog.Logger) *authority {
	return &authority{log: log, grants: map[string]grant{}, conns: map[string][]uint64{}}
}

// Check implements server.Authentication. It fails closed.
func (a *authority) Check(c server.ClientAuthentication) bool {
	if c.Kind() != server.CLIENT {
		return false
	}
	o := c.GetOpts()
	a.mu.RLock()
	g, own := a.grants[o.Nkey]
	a.mu.RUnlock()
	sig, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(o.Nkey)
	if err != nil || key.Verify(c.GetNonce(), sig) != nil {
		return false
	}
	if !own {
		if g, own = a.outsider(o.Nkey, c.GetID()); !own {
			return false
		}
	}
	if g.perms == nil {
		return false
	}
	acc, err := a.server.LookupAccount(g.account)
	if err != nil {
		return false
	}
	c.RegisterUser(&server.User{Username: g.name, Account: acc, Permissions: g.perms})
	return true
}

// admit opens the door for Runners of other processes.
func (a *authority) admit(runners func(string) (RunnerKey, bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runners = runners
}

// outsider is the grant of a key from outside that was proven. Its connection is noted before the
// key is looked up: a cut that follows a revocation finds it.
func (a *authority) outsider(public string, id uint64) (grant, bool) {
	a.mu.Lock()
	runners := a.runners
	a.mu.Unlock()
	if runners == nil {
		return grant{}, false
	}
	k, ok := runners(public)
	if !ok || !k.Client.Valid() || !a.note(k, id) {
		return grant{}, false
	}
	if now, ok := runners(public); !ok || now != k {
		return grant{}, false
	}
	if k.Enrols {
		return grant{k.user(), accountRun, enrolPermissions(k.Client)}, true
	}
	return grant{k.user(), accountRun, runnerPermissions(k.Client, runnerInbox(k.Client))}, true
}

func (k RunnerKey) user() string {
	if k.Enrols {
		return "enrol-" + string(k.Client)
	}
	return "runner-" + string(k.Client)
}

// note keeps a connection's id as long as it lives, of so many at most.
func (a *authority) note(k RunnerKey, id uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var live []uint64
	for _, c := range a.conns[k.user()] {
		if a.server.GetClient(c) != nil {
			live = append(live, c)
		}
	}
	if len(live) < maxPerRunner {
		live = append(live, id)
	}
	a.conns[k.user()] = live
	return live[len(live)-1] == id
}

// cut closes a Runner's connections from outside.
func (a *authority) cut(c event.ClientID) {
	a.mu.Lock()
	var ids []uint64
	for _, enrols := range []bool{false, true} {
		user := RunnerKey{Client: c, Enrols: enrols}.user()
		ids = append(ids, a.conns[user]...)
		delete(a.conns, user)
	}
	a.mu.Unlock()
	for _, id := range ids {
		_ = a.server.DisconnectClientByID(id) // one that is closed already is none
	}
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
