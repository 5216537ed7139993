package eventlog

import (
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Verbs of wc.run.<client>.<verb>, by who sends them (runner/wire has their messages; the
// log does not import it).
var (
	runnerSends = []string{"hello", "claim", "start", "result"}
	serverSends = []string{"offer", "query", "read", "cancel"}
)

// ServerBus is the server's own connection to the account of the Runners: it hears every
// client and may answer. It closes with the log.
func (l *Log) ServerBus() (*nats.Conn, error) {
	return l.bus(grant{"server", accountRun, everything()})
}

// RunnerBus is a connection authenticated as one Runner. It may publish the verbs a Runner
// sends on its own subjects, answer what it was asked, and hear its own verbs and inbox;
// nothing else, no JetStream. It closes with the log.
func (l *Log) RunnerBus(client event.ClientID) (*nats.Conn, error) {
	if !client.Valid() {
		return nil, fault.New(fault.InvalidArguments, "a client id is 1 to 64 of a-z, 0-9, _ and -").WithField("client")
	}
	inbox := runnerInbox(client)
	return l.bus(grant{"runner-" + string(client), accountRun, runnerPermissions(client, inbox)}, nats.CustomInboxPrefix(inbox))
}

// runnerInbox is the prefix of the subjects on which a Runner gets its answers.
func runnerInbox(client event.ClientID) string { return "_INBOX_" + string(client) }

// enrolPermissions let the holder of an enrolment code hand in a key, and hear the answer.
func enrolPermissions(client event.ClientID) *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"wc.enrol." + string(client)}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_ENROL_" + string(client) + ".>"}},
	}
}

func runnerPermissions(client event.ClientID, inbox string) *server.Permissions {
	base := "wc.run." + string(client) + "."
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{},
		Subscribe: &server.SubjectPermission{Allow: []string{inbox + ".>"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: replyTime},
	}
	for _, v := range runnerSends {
		p.Publish.Allow = append(p.Publish.Allow, base+v)
	}
	for _, v := range serverSends {
		p.Subscribe.Allow = append(p.Subscribe.Allow, base+v)
	}
	return p
}

func (l *Log) bus(g grant, opts ...nats.Option) (*nats.Conn, error) {
	l.busMu.Lock()
	defer l.busMu.Unlock()
	if l.busClosed {
		return nil, fault.New(fault.ShuttingDown, "the server is shutting down")
	}
	nc, err := l.auth.connect(g, opts...)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "the connection to the bus could not be made")
	}
	l.buses = append(l.buses, nc)
	return nc, nil
}

func (l *Log) closeBuses() {
	l.busMu.Lock()
	defer l.busMu.Unlock()
	l.busClosed = true
	for _, nc := range l.buses {
		nc.Close()
	}
	l.buses = nil
}
