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

// Conn is the connection that the link speaks over, so that nobody else needs to know NATS.
type Conn = nats.Conn

// Handlers serve what Runners send. Claim and Result may block for seconds.
type Handlers struct {
	Hello  func(event.ClientID, wire.Hello) wire.HelloReply
	Claim  func(event.ClientID, wire.Claim) wire.ClaimReply
	Start  func(event.ClientID, wire.Started)
	Result func(event.ClientID, wire.Result) wire.Ack
	// Enrol takes a Runner's key in the place of its code; nil: none is taken.
	Enrol func(event.ClientID, wire.Enrol) wire.EnrolReply
}

// ErrGone tells that nobody serves the client's subjects: no request was delivered.
var ErrGone = errors.New("no Runner serves this client")

// Server speaks with all Runners over one connection.
type Server struct {
	nc      *nats.Conn
	subs    []*nats.Subscription
	seal    Seal
	limits  *limits
	pending chan struct{}
}

// New listens on a connection to the Runners' account.
func New(nc *nats.Conn, h Handlers, seal Seal) (*Server, error) {
	s := &Server{nc: nc, seal: seal, limits: newLimits(time.Now), pending: make(chan struct{}, maxPending)}
	listen := map[wire.Verb]nats.MsgHandler{
		wire.VerbHello:  s.concurrent(wire.VerbHello, handle(s, wire.VerbHello, maxHello, h.Hello)),
		wire.VerbClaim:  s.concurrent(wire.VerbClaim, handle(s, wire.VerbClaim, maxClaim, h.Claim)),
		wire.VerbResult: s.concurrent(wire.VerbResult, handle(s, wire.VerbResult, wire.MaxMessage, h.Result)),
		wire.VerbEnrol:  s.concurrent(wire.VerbEnrol, handle(s, wire.VerbEnrol, maxEnrol, enrol(h.Enrol))),
		wire.VerbStart: s.rated(wire.VerbStart, handle(s, wire.VerbStart, maxClaim, func(c event.ClientID, m wire.Started) struct{} {
			h.Start(c, m)
			return struct{}{}
		})),
	}
	for v, do := range listen {
		subject := "wc.run.*." + string(v)
		if v == wire.VerbEnrol {
			subject = wire.EnrolSubject("*")
		}
		sub, err := nc.Subscribe(subject, do)
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
	return ask[wire.OfferReply](ctx, s, c, wire.VerbOffer, o)
}

// Query asks a Runner's journal about one id.
func (s *Server) Query(ctx context.Context, c event.ClientID, q wire.Query) (wire.QueryReply, error) {
	return ask[wire.QueryReply](ctx, s, c, wire.VerbQuery, q)
}

// Read makes a pure read.
func (s *Server) Read(ctx context.Context, c event.ClientID, r wire.Read) (wire.ReadReply, error) {
	return ask[wire.ReadReply](ctx, s, c, wire.VerbRead, r)
}

// Cancel asks to end an execution.
func (s *Server) Cancel(ctx context.Context, c event.ClientID, m wire.Cancel) (wire.Ack, error) {
	return ask[wire.Ack](ctx, s, c, wire.VerbCancel, m)
}

func ask[Out any](ctx context.Context, s *Server, c event.ClientID, v wire.Verb, in any) (Out, error) {
	var out Out
	b, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("encode %s: %w", v, err)
	}
	msg, err := s.nc.RequestMsgWithContext(ctx, s.seal.request(c, v, b))
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

// rated drops what is beyond a Runner's rate.
func (s *Server) rated(v wire.Verb, do nats.MsgHandler) nats.MsgHandler {
	return func(m *nats.Msg) {
		if c, ok := clientOf(m.Subject); ok && (c == s.seal.Local || s.limits.take(c, v)) {
			do(m)
		}
	}
}

// concurrent lets one slow message not hold up the others, and one Runner not the others.
func (s *Server) concurrent(v wire.Verb, do nats.MsgHandler) nats.MsgHandler {
	return s.rated(v, func(m *nats.Msg) {
		c, _ := clientOf(m.Subject)
		if c == s.seal.Local {
			c = "" // of this process: only the bound of all together is its
		} else if !s.limits.enter(c) {
			return
		}
		select {
		case s.pending <- struct{}{}:
			go func() {
				defer func() {
					<-s.pending
					s.limits.leave(c)
				}()
				do(m)
			}()
		default:
			s.limits.leave(c)
		}
	})
}

func handle[In, Out any](s *Server, v wire.Verb, limit int, do func(event.ClientID, In) Out) nats.MsgHandler {
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
			_ = s.nc.PublishMsg(s.seal.reply(client, v, m, b))
		}
	}
}

// clientOf reads the client out of wc.run.<client>.<verb> or wc.enrol.<client>.
func clientOf(subject string) (event.ClientID, bool) {
	f := strings.Split(subject, ".")
	if len(f) != 4 && (len(f) != 3 || f[1] != string(wire.VerbEnrol)) {
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
