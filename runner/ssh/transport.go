package ssh

import (
	"context"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"webcodex/eventlog/event"
)

// key names a connection: it is shared only by what has all three in common (SSH-03).
type key struct {
	session    event.SessionID
	resource   string
	generation string
}

// transport is one connection, from its dialling on. The fields below the lock belong to the
// lock of Resources.
type transport struct {
	key    key
	dialed chan struct{} // closed when client or err is set
	client *ssh.Client
	end    func()
	err    error
	dead   chan struct{} // closed when the connection has ended

	users   int
	retired bool // takes no further command: its settings changed, or it failed
	idle    *time.Timer
	once    sync.Once
}

// connect dials in its own time: whoever asked first may leave without taking the connection
// from the others.
func (t *transport) connect(to target, o Options) {
	ctx, cancel := context.WithTimeout(context.Background(), o.Connect)
	defer cancel()
	defer close(t.dialed)
	t.client, t.end, t.err = dial(ctx, to, o.AgentSocket)
	if t.err != nil {
		close(t.dead)
		return
	}
	go func() {
		_ = t.client.Wait()
		t.close()
		close(t.dead)
	}()
	go t.keepalive(o.Keepalive)
}

func (t *transport) close() { t.once.Do(t.end) }

// keepalive closes a connection whose other side answers no more.
func (t *transport) keepalive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-t.dead:
			return
		case <-tick.C:
		}
		late := time.AfterFunc(every, t.close)
		_, _, err := t.client.SendRequest("keepalive@openssh.com", true, nil)
		late.Stop()
		if err != nil {
			t.close()
			return
		}
	}
}

// openChannel opens the channel of one command; ctx bounds it. A connection that does not
// answer in that time is closed.
func (t *transport) openChannel(ctx context.Context) (ssh.Channel, <-chan *ssh.Request, error) {
	stop := context.AfterFunc(ctx, t.close)
	channel, requests, err := t.client.OpenChannel("session", nil)
	if !stop() && err == nil {
		_ = channel.Close()
		err = ctx.Err()
	}
	return channel, requests, err
}
