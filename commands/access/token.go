package access

import (
	"context"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog/event"
	"webcodex/projections/access"
)

// Tokens lets the owner admit second principals and end them. Only the owner's own commands
// reach it: there is no tool for it.
type Tokens struct {
	writer *aggregate.Writer
	fold   *access.Tokens
	known  func() []event.ProjectRegistered
	actor  event.Actor
	now    func() time.Time
}

// NewTokens wires it. Known gives the registered Projects; actor is the owner.
func NewTokens(w *aggregate.Writer, fold *access.Tokens, known func() []event.ProjectRegistered, actor event.Actor, now func() time.Time) *Tokens {
	return &Tokens{writer: w, fold: fold, known: known, actor: actor, now: now}
}

// CreateIn asks for a token, as people write it.
type CreateIn struct {
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	// Projects are agent:<client>:<project>, or the one word all.
	Projects []string `json:"projects"`
	Expires  string   `json:"expires,omitempty"`
	Group    string   `json:"group,omitempty"`
}

// RotateIn asks for another token of a principal.
type RotateIn struct {
	ID      string `json:"id"`
	Expires string `json:"expires,omitempty"` // empty: as before
}

// RevokeIn names a token to end.
type RevokeIn struct {
	ID string `json:"id"`
}

// Issued is a token just made: the only time that anybody sees it.
type Issued struct {
	Token string `json:"token"`
	TokenView
}

// String keeps the token out of whatever prints an Issued.
func (i Issued) String() string { return "token " + string(i.ID) }

// TokenView is a token as its owner sees it.
type TokenView struct {
	ID       event.TokenID   `json:"id"`
	Kind     event.TokenKind `json:"kind"`
	Name     string          `json:"name"`
	Scopes   []string        `json:"scopes"`
	Projects []string        `json:"projects"` // canonical names, or the one word all
	// Group is the beginning of the authority fingerprint: tokens that share it share Sessions.
	Group     string        `json:"group"`
	Status    access.Status `json:"status"`
	CreatedAt string        `json:"created_at"`
	RotatedAt string        `json:"rotated_at,omitempty"`
	RevokedAt string        `json:"revoked_at,omitempty"`
	ExpiresAt *string       `json:"expires_at"` // null: never
}

// TokenList is every token that is remembered, oldest first.
type TokenList struct {
	Tokens []TokenView `json:"tokens"`
}

// allProjects is the word for every Project, in requests and views.
const allProjects = "all"

// groupShown is how much of an authority fingerprint a person needs to tell groups apart.
const groupShown = 12

// Create admits a second principal. Errors: invalid_arguments with the field, unknown_project,
// storage_full, the log's own.
func (t *Tokens) Create(ctx context.Context, in CreateIn) (Issued, error) {
	group, ok := access.GroupOf(event.TokenKind(in.Kind))
	if !ok {
		return Issued{}, bad("kind", "a token's kind is user, project or shared-key")
	}
	at, err := ParseExpiry(in.Expires, t.now())
	if err != nil {
		return Issued{}, err
	}
	n := NewToken{ID: event.NewTokenID(), Kind: event.TokenKind(in.Kind), Name: in.Name, Scopes: in.Scopes, ExpiresAt: at,
		Group: event.TokenID(in.Group)}
	if n.AllProjects, n.Projects, err = parseProjects(in.Projects); err != nil {
		return Issued{}, err
	}
	token := access.NewToken()
	// The identities are random and live in no place: what is kept are their fingerprints.
	n.Hash = access.HashToken(token)
	n.Authority, n.Principal = access.AuthorityFingerprint(group, event.NewNonce()), access.PrincipalFingerprint(group, event.NewNonce())
	err = t.do(ctx, false, func(now time.Time) ([]event.Event, error) { return DecideCreate(t.fold.List(), t.known(), n, now) })
	return t.issued(token, n.ID, err)
}

// Rotate gives a principal a new token; the old one is good for nothing from here on.
func (t *Tokens) Rotate(ctx context.Context, in RotateIn) (Issued, error) {
	id, token := event.TokenID(in.ID), access.NewToken()
	r := Rotation{ID: id, Hash: access.HashToken(token), Given: in.Expires != ""}
	var err error
	if r.ExpiresAt, err = ParseExpiry(in.Expires, t.now()); err != nil {
		return Issued{}, err
	}
	err = t.do(ctx, true, func(now time.Time) ([]event.Event, error) {
		k, ok := t.fold.Get(id)
		return DecideRotate(k, ok, r, now)
	})
	return t.issued(token, id, err)
}

// Revoke ends a token for good. Revoking twice is one event.
func (t *Tokens) Revoke(ctx context.Context, in RevokeIn) (TokenView, error) {
	id := event.TokenID(in.ID)
	err := t.do(ctx, true, func(time.Time) ([]event.Event, error) {
		k, ok := t.fold.Get(id)
		return DecideRevoke(k, ok)
	})
	if err != nil {
		return TokenView{}, err
	}
	k, _ := t.fold.Get(id)
	return viewOf(k, t.now()), nil
}

// List shows every token that is remembered.
func (t *Tokens) List() TokenList {
	now, out := t.now(), TokenList{Tokens: []TokenView{}}
	for _, k := range t.fold.List() {
		out.Tokens = append(out.Tokens, viewOf(k, now))
	}
	return out
}

// do may use the reserve: a full disk keeps nobody in who has to leave.
func (t *Tokens) do(ctx context.Context, reserve bool, decide aggregate.Decide) error {
	_, err := t.writer.Do(ctx, aggregate.Command{Aggregate: event.AccessAggregate(), Actor: t.actor, Reserve: reserve}, decide)
	return err
}

func (t *Tokens) issued(token string, id event.TokenID, err error) (Issued, error) {
	if err != nil {
		return Issued{}, err
	}
	k, _ := t.fold.Get(id)
	return Issued{Token: token, TokenView: viewOf(k, t.now())}, nil
}

func parseProjects(names []string) (all bool, refs []event.ProjectRef, err error) {
	for _, name := range names {
		if name == allProjects {
			all = true
			continue
		}
		ref, ok := event.ParseProject(name)
		if !ok {
			return false, nil, bad("projects", "a Project is named agent:<client>:<project>, or all").WithNext("`webcodex status` shows them")
		}
		refs = append(refs, ref)
	}
	return all, refs, nil
}

func viewOf(k access.Token, now time.Time) TokenView {
	v := TokenView{ID: k.ID, Kind: k.Kind, Name: k.Name, Scopes: k.Scopes, Projects: []string{}, Group: k.Authority[:min(groupShown, len(k.Authority))],
		Status: k.Status(now), CreatedAt: stored(k.CreatedAt), RotatedAt: stored(k.RotatedAt), RevokedAt: stored(k.RevokedAt)}
	if !k.ExpiresAt.IsZero() {
		at := stored(k.ExpiresAt)
		v.ExpiresAt = &at
	}
	if k.AllProjects {
		v.Projects = append(v.Projects, allProjects)
	}
	for _, p := range k.Projects {
		v.Projects = append(v.Projects, p.String())
	}
	return v
}
