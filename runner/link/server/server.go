// Package server is the server's end of the link to its Runners: JSON on core NATS. Who
// speaks is known from the subject alone, which the bus grants to one client only; what a
// message says about its sender is checked against it.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// Bounds on what a Runner may do to the server (faults.md 4).
const (
	maxHello   = 256 << 10
	maxClaim   = 4 << 10
	maxDepth   = 64
	maxPending = 1024 // claims and results being handled at once, all Runners together
)

// Conn is the connection that the link speaks over, so that nobody else needs to know NATS.
type Conn = nats.Conn

// Handlers serve what Runners send. Claim and Result may block for seconds.
type Handlers struct {
	Hello  func(event.ClientID, wire.Hello) wire.HelloReply
	Claim  func(event.ClientID, wire.Claim) wire.ClaimReply
	Start  func(event.ClientID, wire.Started)
	Result func(event.ClientID, wire.Result) wire.Ack
}

// ErrGone tells that nobody serves the client's subjects: no request was delivered.
var ErrGone = errors.New("no Runner serves this client")

// Server speaks with all Runners over one connection.
type Server struct {
	nc      *nats.Conn
	subs    []*nats.Subscription
	pending chan struct{}
}

// New listens on a connection to the Runners' account.
func New(nc *nats.Conn, h Handlers) (*Server, error) {
	s := &Server{nc: nc, pending: make(chan struct{}, maxPending)}
	listen := map[wire.Verb]nats.MsgHandler{
		wire.VerbHello:  s.concurrent(handle(maxHello, h.Hello)),
		wire.VerbClaim:  s.concurrent(handle(maxClaim, h.Claim)),
		wire.VerbResult: s.concurrent(handle(wire.MaxMessage, h.Result)),
		wire.VerbStart: handle(maxClaim, func(c event.ClientID, m wire.Started) struct{} {
			h.Start(c, m)
			return struct{}{}
		}),
	}
	for v, do := range listen {
		sub, err := nc.Subscribe("wc.run.*."+string(v), do)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("listen for %s: %w", v, err)
		}
		s.subs = append(s.subs, sub)
	}
	if err := nc.FlushTimeout(5 * time.Second); err != nil {
		s.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	return s, nil
}

// Close stops listening.
func (s *Server) Close() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe()
	}
}

// Offer sends an offer and waits for the Runner's word on it.
func (s *Server) Offer(ctx context.Context, c event.ClientID, o wire.Offer) (wire.OfferReply, error) {
	return ask[wire.OfferReply](ctx, s.nc, c, wire.VerbOffer, o)
}

// Query asks a Runner's journal about one id.
func (s *Server) Query(ctx context.Context, c event.ClientID, q wire.Query) (wire.QueryReply, error) {
	return ask[wire.QueryReply](ctx, s.nc, c, wire.VerbQuery, q)
}

// Read makes a pure read.
func (s *Server) Read(ctx context.Context, c event.ClientID, r wire.Read) (wire.ReadReply, error) {
	return ask[wire.ReadReply](ctx, s.nc, c, wire.VerbRead, r)
}

// Cancel asks to end an execution.
func (s *Server) Cancel(ctx context.Context, c event.ClientID, m wire.Cancel) (wire.Ack, error) {
	return ask[wire.Ack](ctx, s.nc, c, wire.VerbCancel, m)
}

func ask[Out any](ctx context.Context, nc *nats.Conn, c event.ClientID, v wire.Verb, in any) (Out, error) {
	var out Out
	b, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("encode %s: %w", v, err)
	}
	msg, err := nc.RequestWithContext(ctx, wire.Subject(c, v), b)
	if errors.Is(err, nats.ErrNoResponders) {
		return out, ErrGone
	}
	if errors.Is(err, nats.ErrTimeout) {
		err = context.DeadlineExceeded
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", v, err)
	}
	if !shallow(msg.Data) {
		return out, fmt.Errorf("%s: the answer is nested too deeply", v)
	}
	if err := json.Unmarshal(msg.Data, &out); err != nil {
		return out, fmt.Errorf("decode %s: %w", v, err)
	}
	return out, nil
}

// concurrent lets one slow message not hold up the others. Past the bound a message is
// dropped: its sender repeats it, or gives up without having started anything.
func (s *Server) concurrent(do nats.MsgHandler) nats.MsgHandler {
	return func(m *nats.Msg) {
		select {
		case s.pending <- struct{}{}:
			go func() {
				defer func() { <-s.pending }()
				do(m)
			}()
		default:
		}
	}
}

func handle[In, Out any](limit int, do func(event.ClientID, In) Out) nats.MsgHandler {
	return func(m *nats.Msg) {
		client, ok := clientOf(m.Subject)
		var in In
		if !ok || len(m.Data) > limit || !shallow(m.Data) || json.Unmarshal(m.Data, &in) != nil {
			return
		}
		out := do(client, in)
		if m.Reply == "" {
			return
		}
		if b, err := json.Marshal(out); err == nil {
			_ = m.Respond(b)
		}
	}
}

// clientOf reads the client out of wc.run.<client>.<verb>.
func clientOf(subject string) (event.ClientID, bool) {
	f := strings.Split(subject, ".")
	if len(f) != 4 {
		return "", false
	}
	c := event.ClientID(f[2])
	return c, c.Valid()
}

// shallow reports that JSON is nested at most maxDepth deep, without decoding it.
func shallow(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}
