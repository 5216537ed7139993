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

// MaxRevokedRunners are remembered after their end; then the one revoked longest ago is
// forgotten.
const MaxRevokedRunners = 256

// Runner is the credential of a Runner in another process. It is immutable: a change makes
// another one.
type Runner struct {
	ID       event.TokenID  `json:"id"`
	Client   event.ClientID `json:"client"`
	Name     string         `json:"name"`
	Projects []string       `json:"projects,omitempty"` // empty: all
	// Key is the public key that is the Runner; empty: none is.
	Key string `json:"key,omitempty"`
	// Code is the public key of its newest enrolment code; once there is a Key it is spent.
	Code          string    `json:"code,omitempty"`
	CodeExpiresAt time.Time `json:"code_expires_at,omitzero"`
	CreatedAt     time.Time `json:"created_at"`
	EnrolledAt    time.Time `json:"enrolled_at,omitzero"`
	RotatedAt     time.Time `json:"rotated_at,omitzero"`
	RevokedAt     time.Time `json:"revoked_at,omitzero"`
	RevokedSeq    uint64    `json:"revoked_seq,omitempty"`
}

// StatusInvited is a Runner's whose code was not used yet.
const StatusInvited Status = "invited"

// Status of the credential by the server's clock. Expired is one whose code was not used in
// time, suspended one that lost its key to a restore; a rotation gives both a new code.
func (r Runner) Status(now time.Time) Status {
	switch {
	case !r.RevokedAt.IsZero():
		return StatusRevoked
	case r.Key != "":
		return StatusActive
	case r.Code == "":
		return StatusSuspended
	case !now.Before(r.CodeExpiresAt):
		return StatusExpired
	}
	return StatusInvited
}

// Serves tells whether the Runner may serve a Project of this id and folder name.
func (r Runner) Serves(id event.ProjectID, name string) bool {
	return len(r.Projects) == 0 || slices.Contains(r.Projects, string(id)) || slices.Contains(r.Projects, name)
}

// Runners folds the credentials of Runners. There are few of them, so all are in memory. It is
// safe for concurrent use.
type Runners struct {
	mu      sync.RWMutex
	applied uint64
	byID    map[event.TokenID]Runner
	byKey   map[string]event.TokenID // of keys and of codes, which are never the same
	gather  event.Gather

	version, written uint64 // of the whole, for the file
}

// NewRunners is an empty fold; feed it through Apply.
func NewRunners() *Runners {
	return &Runners{byID: map[event.TokenID]Runner{}, byKey: map[string]event.TokenID{}}
}

// Apply folds one commit (eventlog.Fold).
func (r *Runners) Apply(seq uint64, _ string, c event.Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq <= r.applied {
		return
	}
	r.applied = seq
	switch c.Aggregate {
	case event.RunnersAggregate():
		r.runners(seq, c)
	case event.LogAggregate():
		for _, e := range c.Events {
			if _, ok := e.(event.LogRestored); ok {
				r.suspend()
			}
		}
	}
}

func (r *Runners) runners(seq uint64, c event.Commit) {
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.RunnerInvited:
			if _, there := r.byID[e.Runner]; !there { // an id is given once
				r.put(Runner{ID: e.Runner, Client: e.Client, Name: e.Name, Projects: e.Projects, Code: e.Code,
					CodeExpiresAt: codeEnd(e.CodeExpiresAt, c.At), CreatedAt: c.At})
			}
		case event.RunnerEnrolled:
			if k, ok := r.byID[e.Runner]; ok && k.RevokedAt.IsZero() && k.Key == "" {
				k.Key, k.EnrolledAt = e.Key, c.At
				r.put(k)
			}
		case event.RunnerReinvited:
			if k, ok := r.byID[e.Runner]; ok && k.RevokedAt.IsZero() {
				k.Key, k.EnrolledAt, k.Code, k.CodeExpiresAt, k.RotatedAt = "", time.Time{}, e.Code, codeEnd(e.CodeExpiresAt, c.At), c.At
				r.put(k)
			}
		case event.RunnerRevoked:
			if k, ok := r.byID[e.Runner]; ok && k.RevokedAt.IsZero() {
				k.Key, k.RevokedAt, k.RevokedSeq = "", c.At, seq
				r.put(k)
				r.forget()
			}
		default: // not of this record
		}
	}
	next, state := r.gather.Next(c)
	r.gather = next
	if state != nil {
		r.carried(*state)
	}
}

// codeEnd reads a stored time; a code without one has expired.
func codeEnd(stored string, at time.Time) time.Time {
	when, err := time.Parse(event.TimeForm, stored)
	if err != nil {
		return at
	}
	return when
}

// put replaces a credential. A public key stands for the first that had it.
func (r *Runners) put(k Runner) {
	if old, ok := r.byID[k.ID]; ok {
		r.drop(old)
	}
	r.byID[k.ID] = k
	for _, public := range []string{k.Key, k.Code} {
		if _, taken := r.byKey[public]; !taken && public != "" {
			r.byKey[public] = k.ID
		}
	}
	r.version++
}

func (r *Runners) drop(k Runner) {
	for _, public := range []string{k.Key, k.Code} {
		if r.byKey[public] == k.ID {
			delete(r.byKey, public)
		}
	}
}

// suspend takes every key and code: the log was restored, and what was revoked after the backup
// would be good again.
func (r *Runners) suspend() {
	for _, k := range r.byID {
		if k.RevokedAt.IsZero() {
			k.Key, k.Code = "", ""
			r.put(k)
		}
	}
}

// forget bounds the revoked ones.
func (r *Runners) forget() {
	var gone []Runner
	for _, k := range r.byID {
		if !k.RevokedAt.IsZero() {
			gone = append(gone, k)
		}
	}
	if len(gone) <= MaxRevokedRunners {
		return
	}
	slices.SortFunc(gone, func(a, b Runner) int { return cmp.Compare(a.RevokedSeq, b.RevokedSeq) })
	for _, k := range gone[:len(gone)-MaxRevokedRunners] {
		r.drop(k)
		delete(r.byID, k.ID)
	}
}

// ByKey gives the credential that a public key belongs to, and whether it is that of its code.
func (r *Runners) ByKey(public string) (k Runner, code, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k, ok = r.byID[r.byKey[public]]
	return k, ok && k.Key != public, ok && (k.Key == public || k.Code == public) && public != ""
}

// Active gives the credential of a client that is enrolled.
func (r *Runners) Active(c event.ClientID) (Runner, bool) {
	k, ok := r.ByClient(c)
	return k, ok && k.Key != ""
}

// ByClient gives the credential of a client id, whatever its status.
func (r *Runners) ByClient(c event.ClientID) (Runner, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, k := range r.byID {
		if k.Client == c {
			return k, true
		}
	}
	return Runner{}, false
}

// Get gives a credential by its id.
func (r *Runners) Get(id event.TokenID) (Runner, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k, ok := r.byID[id]
	return k, ok
}

// List gives all of them, oldest first.
func (r *Runners) List() []Runner {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.list()
}

func (r *Runners) list() []Runner {
	out := make([]Runner, 0, len(r.byID))
	for _, k := range r.byID {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Runner) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// runnersForm is the version of the carried state.
const runnersForm = 1

// Carry gives the state to be brought forward, and the form it has. False: the aggregate is not
// that of the Runners.
func (r *Runners) Carry(_ context.Context, a event.Aggregate) (form int, state []byte, ok bool, err error) {
	if a != event.RunnersAggregate() {
		return 0, nil, false, nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	state, err = json.Marshal(r.list())
	return runnersForm, state, err == nil, err
}

// carried takes a state brought forward: it is all there is.
func (r *Runners) carried(s event.CarriedState) {
	var all []Runner
	if s.Form == runnersForm && json.Unmarshal(s.State, &all) == nil {
		r.fill(all)
	}
}

func (r *Runners) fill(all []Runner) {
	r.byID, r.byKey = map[event.TokenID]Runner{}, map[string]event.TokenID{}
	for _, k := range all {
		r.put(k)
	}
	r.version++
}
