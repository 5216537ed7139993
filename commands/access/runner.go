package access

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/access"
	"webcodex/runner/wire"
)

// KindRunner is the kind of credential that a Runner in another process has.
const KindRunner = "runner"

// RunnerOptions of NewRunners.
type RunnerOptions struct {
	Writer *aggregate.Writer
	Fold   *access.Runners
	Actor  event.Actor // the owner
	Now    func() time.Time
	// Code makes an enrolment code for a client, and its public key; nil: none can be made here.
	Code func(event.ClientID) (text, public string, err error)
	// Cut ends the connections of a client; nil: there are none.
	Cut func(event.ClientID)
}

// Runners lets the owner admit Runners of other processes and end them, and takes the keys that
// these hand in. There is no tool for it.
type Runners struct{ o RunnerOptions }

// NewRunners wires it.
func NewRunners(o RunnerOptions) *Runners { return &Runners{o} }

// RunnerIn asks for a Runner's credential, as people write it.
type RunnerIn struct {
	Name string `json:"name"`
	// Projects are ids or folder names of what it may serve; none, or the one word all: whatever
	// its operator gives it.
	Projects []string `json:"projects,omitempty"`
	Expires  string   `json:"expires,omitempty"` // of the code; empty: DefaultCodeLife
}

// RunnerIssued is a code just made: the only time that anybody sees it.
type RunnerIssued struct {
	Code string `json:"code"`
	RunnerView
}

// String keeps the code out of whatever prints it.
func (i RunnerIssued) String() string { return "enrolment code of " + string(i.ID) }

// RunnerView is a Runner's credential as its owner sees it.
type RunnerView struct {
	ID       event.TokenID  `json:"id"`
	Client   event.ClientID `json:"client_id"`
	Name     string         `json:"name"`
	Projects []string       `json:"projects"` // ids or folder names, or the one word all
	Status   access.Status  `json:"status"`
	// CodeExpiresAt is there as long as the code was not used.
	CodeExpiresAt string `json:"code_expires_at,omitempty"`
	CreatedAt     string `json:"created_at"`
	EnrolledAt    string `json:"enrolled_at,omitempty"`
	RevokedAt     string `json:"revoked_at,omitempty"`
}

// RunnerList is every Runner's credential that is remembered, oldest first.
type RunnerList struct {
	Runners []RunnerView `json:"runners"`
}

// Create makes a credential and its code. Errors: invalid_arguments with the field, storage_full,
// unavailable where no Runner could connect; the log's own.
func (r *Runners) Create(ctx context.Context, in RunnerIn) (RunnerIssued, error) {
	at, err := parseCodeLife(in.Expires, r.o.Now())
	if err != nil {
		return RunnerIssued{}, err
	}
	n := NewRunner{ID: event.NewTokenID(), Name: in.Name, Projects: in.Projects, CodeExpiresAt: at}
	n.Client = clientOf(in.Name, n.ID)
	text, err := r.code(n.Client, &n.Code)
	if err != nil {
		return RunnerIssued{}, err
	}
	err = r.do(ctx, false, func(now time.Time) ([]event.Event, error) { return DecideInvite(r.o.Fold.List(), n, now) })
	return r.issued(text, n.ID, err)
}

// Rotate takes the Runner's key and makes a new code for it; its client id stays.
func (r *Runners) Rotate(ctx context.Context, in RotateIn) (RunnerIssued, error) {
	id := event.TokenID(in.ID)
	at, err := parseCodeLife(in.Expires, r.o.Now())
	if err != nil {
		return RunnerIssued{}, err
	}
	have, ok := r.o.Fold.Get(id)
	if !ok {
		return RunnerIssued{}, unknownToken()
	}
	var public string
	text, err := r.code(have.Client, &public)
	if err != nil {
		return RunnerIssued{}, err
	}
	err = r.do(ctx, true, func(now time.Time) ([]event.Event, error) {
		k, found := r.o.Fold.Get(id)
		return DecideReinvite(k, found, public, at, now)
	})
	r.cut(have.Client, err)
	return r.issued(text, id, err)
}

// Revoke ends a Runner's credential for good and its connections at once. Revoking twice is one
// event.
func (r *Runners) Revoke(ctx context.Context, in RevokeIn) (RunnerView, error) {
	id := event.TokenID(in.ID)
	err := r.do(ctx, true, func(time.Time) ([]event.Event, error) {
		k, ok := r.o.Fold.Get(id)
		return DecideRunnerRevoke(k, ok)
	})
	if err != nil {
		return RunnerView{}, err
	}
	k, _ := r.o.Fold.Get(id)
	r.cut(k.Client, nil)
	return runnerView(k, r.o.Now()), nil
}

// List shows every Runner's credential that is remembered.
func (r *Runners) List() RunnerList {
	now, out := r.o.Now(), RunnerList{Runners: []RunnerView{}}
	for _, k := range r.o.Fold.List() {
		out.Runners = append(out.Runners, runnerView(k, now))
	}
	return out
}

// Enrol takes a Runner's key in the place of its code. Who sends has proven both. The same key
// again is as good as once: an answer may be lost.
func (r *Runners) Enrol(c event.ClientID, m wire.Enrol) wire.EnrolReply {
	ctx, cancel := context.WithTimeout(context.Background(), enrolTime)
	defer cancel()
	if m.Protocol != wire.Protocol {
		return wire.EnrolReply{Fault: fault.New(fault.RunnerRefused, "the Runner speaks protocol %d and the server %d: install the same version on both", m.Protocol, wire.Protocol).
			WithReason(wire.RefusedProtocol)}
	}
	err := r.do(ctx, false, func(now time.Time) ([]event.Event, error) {
		k, _, ok := r.o.Fold.ByKey(m.Code)
		return DecideEnrol(k, ok && k.Client == c, r.o.Fold.List(), m, now)
	})
	if err != nil {
		return wire.EnrolReply{Fault: fault.As(err)}
	}
	return wire.EnrolReply{OK: true}
}

// Admit tells of a public key that wants to connect: whose it is, and whether it is a code's. One
// that is good for nothing any more may still ask, to hear why.
func (r *Runners) Admit(public string) (c event.ClientID, code, ok bool) {
	k, code, ok := r.o.Fold.ByKey(public)
	return k.Client, code, ok
}

// Serves tells whether a client is enrolled, and which Projects it may serve.
func (r *Runners) Serves(c event.ClientID) (func(event.ProjectID, string) bool, bool) {
	k, ok := r.o.Fold.Active(c)
	return k.Serves, ok
}

// Enrolled lists the clients that may be Runners now.
func (r *Runners) Enrolled() []event.ClientID {
	var out []event.ClientID
	for _, k := range r.o.Fold.List() {
		if _, ok := r.o.Fold.Active(k.Client); ok {
			out = append(out, k.Client)
		}
	}
	return out
}

func (r *Runners) code(c event.ClientID, public *string) (text string, err error) {
	if r.o.Code == nil {
		return "", fault.New(fault.Unavailable, "a code tells a Runner where its server is, and none runs here").
			WithNext("start it with --runner-listen, for example `webcodex serve --runner-listen HOST:7422`")
	}
	text, *public, err = r.o.Code(c)
	return text, err
}

func (r *Runners) cut(c event.ClientID, err error) {
	if err == nil && r.o.Cut != nil {
		r.o.Cut(c)
	}
}

// do may use the reserve: a full disk keeps nobody in who has to leave.
func (r *Runners) do(ctx context.Context, reserve bool, decide aggregate.Decide) error {
	_, err := r.o.Writer.Do(ctx, aggregate.Command{Aggregate: event.RunnersAggregate(), Actor: r.o.Actor, Reserve: reserve}, decide)
	return err
}

func (r *Runners) issued(text string, id event.TokenID, err error) (RunnerIssued, error) {
	if err != nil {
		return RunnerIssued{}, err
	}
	k, _ := r.o.Fold.Get(id)
	return RunnerIssued{Code: text, RunnerView: runnerView(k, r.o.Now())}, nil
}

// clientOf makes a client id that tells a person which Runner it is, and that no other one has.
func clientOf(name string, id event.TokenID) event.ClientID {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= maxClientName {
			break
		}
	}
	slug := strings.Trim(b.String(), "-")
	if slug == "" {
		slug = "runner"
	}
	tail := strings.TrimPrefix(string(id), event.TokenPrefix)
	if _, err := hex.DecodeString(tail); err != nil || len(tail) < 8 {
		return ""
	}
	return event.ClientID(slug + "-" + tail[:8])
}

func runnerView(k access.Runner, now time.Time) RunnerView {
	v := RunnerView{ID: k.ID, Client: k.Client, Name: k.Name, Projects: k.Projects, Status: k.Status(now), CreatedAt: stored(k.CreatedAt),
		EnrolledAt: stored(k.EnrolledAt), RevokedAt: stored(k.RevokedAt)}
	if k.Key == "" && k.RevokedAt.IsZero() {
		v.CodeExpiresAt = stored(k.CodeExpiresAt)
	}
	if len(v.Projects) == 0 {
		v.Projects = []string{allProjects}
	}
	return v
}
