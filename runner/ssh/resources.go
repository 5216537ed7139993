package ssh

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/ownerfile"
)

// Options of New.
type Options struct {
	// File is the operator's settings; one that is not there has no resources.
	File string
	// Home is what ~/ in the settings means; empty: the account's.
	Home string
	// AgentSocket is where the agent listens; empty: SSH_AUTH_SOCK.
	AgentSocket string
	// Single gives each command a connection of its own (SSH-04).
	Single bool
	// Connect, Keepalive and Idle replace 10 s, 15 s and 300 s; 0: those (SSH-13).
	Connect, Keepalive, Idle time.Duration
	patient                  time.Duration // replaces shell.Recovery; 0: that
	Logger                   *slog.Logger
}

// Resources are the named resources of a Runner and the connections to them.
type Resources struct {
	o Options

	mu       sync.Mutex
	read     ownerfile.Stamp
	settings settings
	broken   error
	held     map[key]*transport
	all      map[*transport]struct{}
	closed   bool
}

// New reads nothing yet: the settings are looked at whenever a command is prepared.
func New(o Options) *Resources {
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir()
	}
	if o.AgentSocket == "" {
		o.AgentSocket = os.Getenv("SSH_AUTH_SOCK")
	}
	o.Connect, o.Keepalive, o.Idle = cmp.Or(o.Connect, connectTime), cmp.Or(o.Keepalive, keepaliveTime), cmp.Or(o.Idle, idleTime)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Resources{o: o, held: map[key]*transport{}, all: map[*transport]struct{}{}}
}

// Close ends every connection; what runs on them has an unknown outcome.
func (r *Resources) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for t := range r.all {
		r.retireLocked(t)
		go t.closeDialed()
	}
}

// Channel is where one command will run. Nothing was sent to it yet.
type Channel struct {
	cwd      string // the resource's default
	settings string // the generation of the settings that led there
	channel  ssh.Channel
	requests <-chan *ssh.Request
	give     func(failed bool) // gives the connection back, once
}

// Open prepares for one command of a Session on a resource: it connects, or takes the connection
// of the same Session, resource and settings. Every error means that nothing was started:
// ssh_session_required, ssh_resource_not_found, ssh_connection_failed with a reason, cancelled,
// unavailable where the settings cannot be read. The Channel must be run or closed.
func (r *Resources) Open(ctx context.Context, session event.SessionID, name string) (*Channel, *fault.Error) {
	if !session.Valid() {
		return nil, notStarted(fault.New(fault.SSHSessionRequired, "a named resource is used under a Session alone").WithField("session_id"))
	}
	to, f := r.find(name)
	if f != nil {
		return nil, f
	}
	for try := 0; ; try++ {
		t, fresh, f := r.transport(to, session)
		if f != nil {
			return nil, f
		}
		c, err := r.channel(ctx, t, to)
		if err == nil {
			return c, nil
		}
		r.release(t, true)
		// Nothing was sent, so a connection that died unnoticed while it was kept is no reason to
		// fail: another is made, once.
		var refused *ssh.OpenChannelError
		var dialed *dialError
		if fresh || try > 0 || ctx.Err() != nil || errors.As(err, &refused) || errors.As(err, &dialed) {
			return nil, r.openFault(ctx, name, err)
		}
	}
}

func (r *Resources) openFault(ctx context.Context, name string, err error) *fault.Error {
	var d *dialError
	var refused *ssh.OpenChannelError
	var f *fault.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return notStarted(fault.Wrap(err, fault.Cancelled, "the call was cancelled before the resource was reached"))
	case errors.As(err, &d):
		f = connectFault(d.reason, d.jump, d.cause)
	case errors.As(err, &refused):
		f = connectFault("channel_refused", false, err)
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded): // of the call or of the channel
		f = connectFault("connect_timeout", false, err)
	default:
		f = connectFault("unreachable", false, err)
	}
	r.o.Logger.Warn("a resource could not be used", "resource", name, "reason", f.Reason)
	r.o.Logger.Debug("why a resource could not be used", "resource", name, "cause", f.Unwrap())
	return f
}

// channel waits for the connection and opens a channel on it.
func (r *Resources) channel(ctx context.Context, t *transport, to target) (*Channel, error) {
	select {
	case <-t.dialed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if t.err != nil {
		return nil, t.err
	}
	within, cancel := context.WithTimeout(ctx, r.o.Connect)
	defer cancel()
	channel, requests, err := t.openChannel(within)
	if err != nil {
		return nil, err
	}
	var once sync.Once
	return &Channel{cwd: to.defaultCwd(), settings: to.generation, channel: channel, requests: requests,
		give: func(failed bool) { once.Do(func() { r.release(t, failed) }) }}, nil
}

// Close gives up a channel on which nothing was run.
func (c *Channel) Close() {
	go func() { _ = c.channel.Close() }() // a connection that hangs would keep us
	c.give(false)
}

// find is the target that a name stands for now. What no longer leads where it led is retired:
// it takes no command that is prepared from here on (SSH-06, SSH-08).
func (r *Resources) find(name string) (target, *fault.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return target{}, notStarted(fault.New(fault.ShuttingDown, "the Runner is stopping"))
	}
	if now := ownerfile.StampOf(r.o.File); !now.Same(r.read) {
		r.read = now
		r.settings, r.broken = readSettings(r.o.File, r.o.Home)
		if r.broken != nil {
			r.o.Logger.Error("the settings of the resources cannot be used", "cause", r.broken)
		}
		for k, t := range r.held {
			if to, ok := r.settings.targets[k.resource]; !ok || to.generation != k.generation {
				r.retireLocked(t)
			}
		}
	}
	if r.broken != nil {
		return target{}, notStarted(fault.New(fault.Unavailable, "the settings of the Runner's resources cannot be used").
			WithReason("ssh_settings_invalid").WithNext("the operator mends them; the Runner's log says what is wrong"))
	}
	to, ok := r.settings.targets[name]
	if !ok {
		return to, notStarted(fault.New(fault.SSHResourceNotFound, "the Runner has no resource of this name").WithField("resource").
			WithNext("ask the operator for its name, or use a Session without a resource"))
	}
	return to, nil
}

// transport is the connection to use, counted as used; fresh: it was made for this.
func (r *Resources) transport(to target, session event.SessionID) (t *transport, fresh bool, f *fault.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := key{session, to.name, to.generation}
	if t = r.held[k]; t != nil {
		t.users++
		if t.idle != nil {
			t.idle.Stop()
			t.idle = nil
		}
		return t, false, nil
	}
	if r.closed {
		return nil, false, notStarted(fault.New(fault.ShuttingDown, "the Runner is stopping"))
	}
	if !r.roomLocked() {
		return nil, false, connectFault("too_many_connections", false, nil)
	}
	t = &transport{key: k, users: 1, retired: r.o.Single, dialed: make(chan struct{}), dead: make(chan struct{})}
	r.all[t] = struct{}{}
	if !r.o.Single {
		r.held[k] = t
	}
	go t.connect(to, r.o)
	go r.forget(t)
	return t, true, nil
}

// roomLocked makes room for one more connection, of one that nobody uses if need be.
func (r *Resources) roomLocked() bool {
	live := 0
	var unused *transport
	for t := range r.all {
		if t.users > 0 || !t.retired {
			live++
		}
		if t.users == 0 && !t.retired {
			unused = t
		}
	}
	if live >= maxTransports && unused != nil {
		r.retireLocked(unused)
		live--
	}
	return live < maxTransports
}

// forget takes a connection out once it has ended.
func (r *Resources) forget(t *transport) {
	<-t.dialed
	<-t.dead
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retireLocked(t)
	delete(r.all, t)
}

// release ends one use; failed: nobody else shall use the connection from here on.
func (r *Resources) release(t *transport, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.users--
	if failed {
		r.retireLocked(t)
	}
	switch {
	case t.users > 0:
	case t.retired:
		go t.closeDialed()
	default:
		t.idle = time.AfterFunc(r.o.Idle, func() { r.reap(t) })
	}
}

// reap closes a connection that nobody used for a while.
func (r *Resources) reap(t *transport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.users == 0 {
		r.retireLocked(t)
	}
}

// retireLocked keeps new commands from a connection. The last command on it closes it.
func (r *Resources) retireLocked(t *transport) {
	t.retired = true
	if r.held[t.key] == t {
		delete(r.held, t.key)
	}
	if t.idle != nil {
		t.idle.Stop()
		t.idle = nil
	}
	if t.users == 0 {
		go t.closeDialed()
	}
}

func (t *transport) closeDialed() {
	<-t.dialed
	if t.err == nil {
		t.close()
	}
}
