package access

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"webcodex/eventlog/event"
)

// MaxRevoked tokens are remembered after their end, for people who look at the list; then the
// one revoked longest ago is forgotten.
const MaxRevoked = 256

// Token is one second principal with its token. It is immutable: a change makes another one.
type Token struct {
	ID          event.TokenID      `json:"id"`
	Kind        event.TokenKind    `json:"kind"`
	Name        string             `json:"name"`
	Scopes      []string           `json:"scopes"`
	AllProjects bool               `json:"all_projects,omitempty"`
	Projects    []event.ProjectRef `json:"projects,omitempty"`
	Authority   string             `json:"authority"`
	Principal   string             `json:"principal"`
	// Hash of the token that is good now; empty: none is, until the next rotation.
	Hash      string    `json:"hash,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	RotatedAt time.Time `json:"rotated_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	// RevokedSeq orders revoked tokens.
	RevokedSeq uint64 `json:"revoked_seq,omitempty"`
}

// Status of a token.
type Status string

// Statuses. A suspended token lost its hash to a restore and comes back by a rotation.
const (
	StatusActive    Status = "active"
	StatusExpired   Status = "expired"
	StatusRevoked   Status = "revoked"
	StatusSuspended Status = "suspended"
)

// Status is the token's status by the server's clock.
func (t Token) Status(now time.Time) Status {
	switch {
	case !t.RevokedAt.IsZero():
		return StatusRevoked
	case t.Hash == "":
		return StatusSuspended
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return StatusExpired
	}
	return StatusActive
}

// Tokens folds the second principals. There are few of them, so all are in memory. It is safe
// for concurrent use.
type Tokens struct {
	mu      sync.RWMutex
	applied uint64
	byID    map[event.TokenID]Token
	byHash  map[string]event.TokenID
	gather  event.Gather
	changed chan struct{} // buffered: something may have ended

	version, written uint64 // of the whole, for the file
}

// NewTokens is an empty fold; feed it through Apply.
func NewTokens() *Tokens {
	return &Tokens{byID: map[event.TokenID]Token{}, byHash: map[string]event.TokenID{}, changed: make(chan struct{}, 1)}
}

// Apply folds one commit (eventlog.Fold).
func (t *Tokens) Apply(seq uint64, _ string, c event.Commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq <= t.applied {
		return
	}
	t.applied = seq
	switch c.Aggregate {
	case event.AccessAggregate():
		t.access(seq, c)
	case event.LogAggregate():
		for _, e := range c.Events {
			if _, ok := e.(event.LogRestored); ok {
				t.suspend()
			}
		}
	}
}

func (t *Tokens) access(seq uint64, c event.Commit) {
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.TokenCreated:
			if _, there := t.byID[e.Token]; there {
				continue // an id is given once
			}
			t.put(Token{ID: e.Token, Kind: e.Kind, Name: e.Name, Scopes: e.Scopes, AllProjects: e.AllProjects, Projects: e.Projects,
				Authority: e.Authority, Principal: e.Principal, Hash: e.Hash, CreatedAt: c.At, ExpiresAt: expiry(e.ExpiresAt, c.At)})
		case event.TokenRotated:
			if k, ok := t.byID[e.Token]; ok && k.RevokedAt.IsZero() {
				k.Hash, k.RotatedAt, k.ExpiresAt = e.Hash, c.At, expiry(e.ExpiresAt, c.At)
				t.put(k)
			}
		case event.TokenRevoked:
			if k, ok := t.byID[e.Token]; ok && k.RevokedAt.IsZero() {
				k.Hash, k.RevokedAt, k.RevokedSeq = "", c.At, seq
				t.put(k)
				t.forget()
			}
		default: // refs are another fold's
		}
	}
	next, state := t.gather.Next(c)
	t.gather = next
	if state != nil {
		t.carried(*state)
	}
}

// expiry reads a stored time; what is no time has passed: it never makes a token good for ever.
func expiry(stored string, at time.Time) time.Time {
	if stored == "" {
		return time.Time{}
	}
	when, err := time.Parse(event.TimeForm, stored)
	if err != nil {
		return at
	}
	return when
}

// put replaces a token and says so.
func (t *Tokens) put(k Token) {
	if old, ok := t.byID[k.ID]; ok && t.byHash[old.Hash] == k.ID {
		delete(t.byHash, old.Hash)
	}
	t.byID[k.ID] = k
	if _, taken := t.byHash[k.Hash]; !taken && event.ValidFingerprint(k.Hash) {
		t.byHash[k.Hash] = k.ID
	}
	t.touch()
}

func (t *Tokens) touch() {
	t.version++
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// suspend takes every hash: the log was restored, and what was revoked after the backup would
// be good again.
func (t *Tokens) suspend() {
	for _, k := range t.byID {
		if k.RevokedAt.IsZero() {
			k.Hash = ""
			t.put(k)
		}
	}
}

// forget bounds the revoked ones.
func (t *Tokens) forget() {
	var gone []Token
	for _, k := range t.byID {
		if !k.RevokedAt.IsZero() {
			gone = append(gone, k)
		}
	}
	if len(gone) <= MaxRevoked {
		return
	}
	slices.SortFunc(gone, func(a, b Token) int { return cmp.Compare(a.RevokedSeq, b.RevokedSeq) })
	for _, k := range gone[:len(gone)-MaxRevoked] {
		delete(t.byID, k.ID)
	}
}

// Find gives the token whose hash this is, whatever its status: the caller asks Status.
func (t *Tokens) Find(hash string) (Token, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	k, ok := t.byID[t.byHash[hash]]
	return k, ok && sameHash(k.Hash, hash)
}

// Get gives a token by its id.
func (t *Tokens) Get(id event.TokenID) (Token, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	k, ok := t.byID[id]
	return k, ok
}

// List gives all of them, oldest first.
func (t *Tokens) List() []Token {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.list()
}

func (t *Tokens) list() []Token {
	out := make([]Token, 0, len(t.byID))
	for _, k := range t.byID {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Token) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Changed has something after a change: what a token opened may have to end.
func (t *Tokens) Changed() <-chan struct{} { return t.changed }

// tokensForm is the version of the carried state.
const tokensForm = 1

// Carry gives the state to be brought forward, and the form it has. False: the aggregate is
// not that of the tokens, or there is none.
func (t *Tokens) Carry(_ context.Context, a event.Aggregate) (form int, state []byte, ok bool, err error) {
	if a != event.AccessAggregate() {
		return 0, nil, false, nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	state, err = json.Marshal(t.list())
	return tokensForm, state, err == nil, err
}

// carried takes a state brought forward: it is all there is.
func (t *Tokens) carried(s event.CarriedState) {
	var all []Token
	if s.Form != tokensForm || json.Unmarshal(s.State, &all) != nil {
		return
	}
	t.fill(all)
}

func (t *Tokens) fill(all []Token) {
	t.byID, t.byHash = map[event.TokenID]Token{}, map[string]event.TokenID{}
	for _, k := range all {
		t.put(k)
	}
	t.touch()
}
