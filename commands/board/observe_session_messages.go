package board

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// ObserveIn is the input of observe_session_messages.
type ObserveIn struct {
	SessionID string  `json:"session_id"`
	Token     *string `json:"after_observation_token,omitempty"`
	WaitSecs  *int    `json:"wait_secs,omitempty"`
	Limit     *int    `json:"limit,omitempty"`
}

// ObserveOut is its output: state that changed, not a log of changes, and no receipt.
type ObserveOut struct {
	// Messages are as they are now, in the order of their newest change.
	Messages []session.MessageView `json:"messages"`
	Token    string                `json:"observation_token"`
	// HasMore: the token covers only what is returned.
	HasMore bool `json:"has_more"`
	// HistoryLost: what happened since the caller's token cannot be told whole any more.
	HistoryLost bool   `json:"history_lost"`
	Changed     bool   `json:"changed"`
	WaitOutcome string `json:"wait_outcome"`
}

// Wait outcomes. A wait that ends without a change is a success (MSG-25).
const (
	notWaited = "not_waited"
	changed   = "changed"
	timeout   = "timeout"
)

// ObserveMessages follows a board: first a baseline, then what changed after a token.
var ObserveMessages = call.Spec{
	Name: "observe_session_messages", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: ObserveIn{}, Run: observeMessages,
}

func observeMessages(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ObserveIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	if err := in.check(); err != nil {
		return call.Result{}, err
	}
	o := &observer{c: c, limit: clamp(in.Limit, ObserveLimit, MaxObserveLimit)}
	out, err := o.observe(ctx, in.Token, in.WaitSecs)
	return call.Result{Output: out}, err
}

func (in ObserveIn) check() error {
	switch {
	case in.WaitSecs == nil:
		return nil
	case in.Token == nil:
		return fault.New(fault.InvalidArguments, "only with a token is there something to wait for").WithField("wait_secs").
			WithNext("call once without wait_secs for a token")
	case *in.WaitSecs < 1 || *in.WaitSecs > MaxWaitSecs:
		return fault.New(fault.InvalidArguments, "wait_secs is from 1 to %d", MaxWaitSecs).WithField("wait_secs")
	}
	return nil
}

// observer is one caller at one place of one board. Its answers are pointers, since a
// thousand that wait have a thousand stacks.
type observer struct {
	c     *call.Call
	after uint64
	limit int
}

// observe answers from a token, or gives the first one.
func (o *observer) observe(ctx context.Context, token *string, waitSecs *int) (*ObserveOut, error) {
	if token == nil {
		return o.baseline(false)
	}
	at, err := o.open(*token)
	switch {
	case err != nil:
		return nil, err
	case at.epoch != o.c.Epoch():
		// The history that the token counts in is not the one told now. What the caller has seen
		// may be gone, and the same numbers stand for other changes.
		return o.baseline(true)
	}
	o.after = at.revision
	if waitSecs == nil {
		return o.look(notWaited)
	}
	if out, err := o.look(changed); err != nil || out.Changed {
		return out, err
	}
	return o.await(ctx, waitOf(*waitSecs))
}

// baseline is the board's end, and nothing of what came before it (MSG-14).
func (o *observer) baseline(lost bool) (*ObserveOut, error) {
	v, err := read(o.c)
	if err != nil {
		return nil, err
	}
	return &ObserveOut{Messages: []session.MessageView{}, Token: o.seal(v.Board.Revision), HistoryLost: lost, Changed: lost,
		WaitOutcome: notWaited}, nil
}

// look is one look at the board. The fold has durable commits alone, so a token that is made
// of it is good after any restart that keeps the Session (MSG-22).
func (o *observer) look(outcome string) (*ObserveOut, error) {
	v, err := read(o.c)
	if err != nil {
		return nil, err
	}
	out := &ObserveOut{Messages: []session.MessageView{}, WaitOutcome: outcome}
	l, err := DecideObserve(v.Board, o.after, o.limit, func(page []*session.Message) int {
		out.Messages = shown(v.Core.ID, page)
		return len(out.Messages)
	})
	if err != nil {
		return nil, err
	}
	out.Token, out.HasMore, out.HistoryLost, out.Changed = o.seal(l.Next), l.More, l.Lost, l.Changed()
	return out, nil
}

// await looks until something has changed, in the folded state and under no lock; being woken
// proves nothing (MSG-23, MSG-24).
func (o *observer) await(ctx context.Context, d time.Duration) (out *ObserveOut, err error) {
	err = o.c.Waiting(func() (err error) {
		bounded, cancel := o.c.Bounded(ctx, d)
		defer cancel()
		ended := o.c.Sessions().Await(bounded, o.c.Session.ID, func() bool {
			out, err = o.look(changed)
			return err != nil || out.Changed
		})
		switch {
		case err != nil:
			return err
		case ended != nil && ctx.Err() != nil:
			return fault.Wrap(ctx.Err(), fault.Cancelled, "the wait was cancelled")
		case ended != nil:
			out.WaitOutcome = timeout
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// cursor is what a token hides: how far its holder has seen a board, in which history.
type cursor struct {
	revision uint64
	epoch    string
}

// A token is authentic or it is none; what it is of lies inside, so that a refusal can tell a
// token of another Session from what never was one.
const (
	tokenUse   = "webcodex.observation-token.v2"
	tokenOwner = 16 // bytes of what stands for the Session's incarnation
	tokenHead  = tokenOwner + 8
)

// owner stands for one incarnation of one Session.
func (o *observer) owner() []byte {
	sum := sha256.Sum256([]byte(event.Incarnation(o.c.Session.ID, o.c.Session.Nonce)))
	return sum[:tokenOwner]
}

func (o *observer) seal(revision uint64) string {
	body := binary.BigEndian.AppendUint64(o.owner(), revision)
	return o.c.Tokens().Seal(tokenUse, nil, append(body, o.c.Epoch()...))
}

func (o *observer) open(s string) (cursor, error) {
	if len(s) > MaxToken {
		return cursor{}, invalidToken(tokenOversized)
	}
	body, err := o.c.Tokens().Open(tokenUse, nil, s)
	switch {
	case err != nil || len(body) < tokenHead:
		return cursor{}, invalidToken(tokenMalformed)
	case !bytes.Equal(body[:tokenOwner], o.owner()):
		return cursor{}, invalidToken(tokenForeign)
	}
	return cursor{revision: binary.BigEndian.Uint64(body[tokenOwner:]), epoch: string(body[tokenHead:])}, nil
}
