// Package client is the Runner's end of the link to the server: JSON on core NATS subjects of
// its own client id. It does not pull in the NATS server.
package client

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Conn is the connection that a link speaks over, so that nobody else needs to know NATS.
type Conn = nats.Conn

// Handlers serve what the server asks. Offer, Query and Cancel must return soon; Read is
// called on its own goroutine.
type Handlers struct {
	Offer  func(wire.Offer) wire.OfferReply
	Query  func(wire.Query) wire.QueryReply
	Cancel func(wire.Cancel) wire.Ack
	Read   func(context.Context, wire.Read) wire.ReadReply
}

const (
	helloTimeout  = 3 * time.Second
	retryEvery    = 250 * time.Millisecond
	resultTimeout = 3 * time.Second
)

// Link is one Runner life's connection.
type Link struct {
	nc       *nats.Conn
	client   event.ClientID
	server   ed25519.PublicKey
	announce chan struct{}
	accepted chan struct{} // closed at the first accepted hello
}

// New makes a link over a connection that is authenticated as the client. What is not signed
// with the server's key is refused; nil: the server is this process, and nobody stands between.
func New(nc *nats.Conn, client event.ClientID, server ed25519.PublicKey) *Link {
	return &Link{nc: nc, client: client, server: server, announce: make(chan struct{}, 1), accepted: make(chan struct{})}
}

// ErrUnsigned tells of an answer that is not the server's of the enrolment.
var ErrUnsigned = errors.New("the answer is not signed with the key of the server that this Runner enrolled at")

// Accepted is closed when the server has accepted the Runner for the first time.
func (l *Link) Accepted() <-chan struct{} { return l.accepted }

// Announce says hello soon: the Projects have changed.
func (l *Link) Announce() {
	select {
	case l.announce <- struct{}{}:
	default:
	}
}

// Serve says hello until the server accepts, then serves and goes on saying hello until ctx
// ends. While another instance of the client holds the lease, nothing is served.
func (l *Link) Serve(ctx context.Context, hello func() wire.Hello, h Handlers, told func(wire.HelloReply, error)) error {
	// After a cut the server learns at once that this Runner hears it again.
	l.nc.SetReconnectHandler(func(*nats.Conn) { l.Announce() })
	var subs []*nats.Subscription
	stop := func() {
		for _, s := range subs {
			_ = s.Unsubscribe()
		}
		subs = nil
	}
	defer stop()
	first := true
	for {
		h0 := hello()
		h0.Listening = subs != nil
		reply, err := l.hello(ctx, h0)
		if ctx.Err() != nil {
			return nil
		}
		if told != nil {
			told(reply, err)
		}
		pause := wire.HelloEvery
		switch {
		case errors.Is(err, nats.ErrConnectionClosed):
			return fault.Wrap(err, fault.ShuttingDown, "the connection to the server is closed")
		case err != nil:
			pause = retryEvery
		case !reply.OK:
			stop()
		case subs == nil:
			if subs, err = l.subscribe(ctx, h); err != nil {
				return err
			}
			if first {
				first = false
				close(l.accepted)
			}
			pause = 0 // the server sends only after a hello that came when it could be heard
		}
		if pause == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.announce:
		case <-time.After(pause):
		}
	}
}

func (l *Link) hello(ctx context.Context, h wire.Hello) (wire.HelloReply, error) {
	var reply wire.HelloReply
	err := l.request(ctx, wire.VerbHello, h, &reply, helloTimeout)
	return reply, err
}

// Claim asks once for a grant.
func (l *Link) Claim(ctx context.Context, c wire.Claim) (wire.ClaimReply, error) {
	var reply wire.ClaimReply
	err := l.request(ctx, wire.VerbClaim, c, &reply, wire.GrantWait)
	return reply, err
}

// Result tells an end and waits for its acknowledgement.
func (l *Link) Result(ctx context.Context, r wire.Result) (wire.Ack, error) {
	var ack wire.Ack
	err := l.request(ctx, wire.VerbResult, r, &ack, resultTimeout)
	return ack, err
}

// Started is a hint that is not answered.
func (l *Link) Started(s wire.Started) {
	if b, err := json.Marshal(s); err == nil {
		_ = l.nc.Publish(wire.Subject(l.client, wire.VerbStart), b)
	}
}

func (l *Link) request(ctx context.Context, v wire.Verb, in, out any, timeout time.Duration) error {
	b, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode %s: %w", v, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	msg, err := l.nc.RequestWithContext(ctx, wire.Subject(l.client, v), b)
	if err != nil {
		return fmt.Errorf("%s: %w", v, err)
	}
	if l.server != nil && !wire.VerifyReply(l.server, l.client, v, b, msg.Data, signature(msg)) {
		return fmt.Errorf("%s: %w", v, ErrUnsigned)
	}
	if err := json.Unmarshal(msg.Data, out); err != nil {
		return fmt.Errorf("decode %s: %w", v, err)
	}
	return nil
}

func (l *Link) subscribe(ctx context.Context, h Handlers) ([]*nats.Subscription, error) {
	reads, waits := make(chan struct{}, maxReads), make(chan struct{}, maxWaits)
	handlers := map[wire.Verb]nats.MsgHandler{
		wire.VerbOffer:  l.signed(wire.VerbOffer, serve(h.Offer)),
		wire.VerbQuery:  l.signed(wire.VerbQuery, serve(h.Query)),
		wire.VerbCancel: l.signed(wire.VerbCancel, serve(h.Cancel)),
		wire.VerbRead: l.signed(wire.VerbRead, serveLater(func(m *nats.Msg, r wire.Read) {
			places := reads
			if r.Op.Waits() {
				places = waits
			}
			select {
			case places <- struct{}{}:
			default:
				answer(m, wire.ReadReply{Fault: fault.New(fault.TooManyCalls, "the Runner serves %d reads already", cap(places))})
				return
			}
			go func() {
				defer func() { <-places }()
				answer(m, h.Read(ctx, r))
			}()
		})),
	}
	var subs []*nats.Subscription
	for v, do := range handlers {
		s, err := l.nc.Subscribe(wire.Subject(l.client, v), do)
		if err != nil {
			return subs, fmt.Errorf("subscribe %s: %w", v, err)
		}
		subs = append(subs, s)
	}
	flush, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	if err := l.nc.FlushWithContext(flush); err != nil && ctx.Err() == nil {
		return subs, fmt.Errorf("subscribe: %w", err)
	}
	return subs, nil
}

// maxReads bounds the reads served at once; maxWaits those that mostly wait for a change, which
// must not keep the others out (faults.md 4).
const (
	maxReads = 64
	maxWaits = 2000
)

// signed hands on what the server asked this client, and refuses the rest (AUTH-19).
func (l *Link) signed(v wire.Verb, do nats.MsgHandler) nats.MsgHandler {
	if l.server == nil {
		return do
	}
	return func(m *nats.Msg) {
		if wire.VerifyRequest(l.server, l.client, v, m.Data, signature(m)) {
			do(m)
			return
		}
		f := fault.New(fault.RunnerRefused, "the request is not signed with the key of the server that this Runner enrolled at").WithReason("unsigned")
		switch v {
		case wire.VerbOffer:
			f.ExecutionState = string(event.NotStarted)
			answer(m, wire.OfferReply{State: wire.JRefused, Fault: f})
		case wire.VerbRead:
			answer(m, wire.ReadReply{Fault: f})
		default: // no answer says that nothing is known and nothing was ended
		}
	}
}

func signature(m *nats.Msg) []byte {
	sig, err := base64.RawURLEncoding.DecodeString(m.Header.Get(wire.SignatureHeader))
	if err != nil {
		return nil
	}
	return sig
}

// serve answers at once what it can read.
func serve[In, Out any](do func(In) Out) nats.MsgHandler {
	return serveLater(func(m *nats.Msg, in In) { answer(m, do(in)) })
}

// serveLater drops what it cannot read: the server never sends it.
func serveLater[In any](do func(*nats.Msg, In)) nats.MsgHandler {
	return func(m *nats.Msg) {
		var in In
		if json.Unmarshal(m.Data, &in) == nil {
			do(m, in)
		}
	}
}

func answer(m *nats.Msg, v any) {
	if b, err := json.Marshal(v); err == nil {
		_ = m.Respond(b)
	}
}
