package access

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/projections/access"
)

// NewToken is a second principal to be. Ids, hash and fingerprints come from the edge.
type NewToken struct {
	ID          event.TokenID
	Hash        string
	Kind        event.TokenKind
	Name        string
	Scopes      []string
	AllProjects bool
	Projects    []event.ProjectRef
	ExpiresAt   time.Time // zero: never
	// Authority is a group of its own, unless Group names a shared key to join.
	Authority, Principal string
	Group                event.TokenID
}

// DecideCreate admits a second principal, or says what is wrong with the request.
func DecideCreate(have []access.Token, known []event.ProjectRegistered, n NewToken, now time.Time) ([]event.Event, error) {
	live := 0
	for _, k := range have {
		if k.RevokedAt.IsZero() {
			live++
		}
	}
	if live >= MaxTokens {
		return nil, fault.New(fault.StorageFull, "there are %d tokens already", MaxTokens).WithNext("revoke one that nobody needs any more")
	}
	if _, ok := access.GroupOf(n.Kind); !ok {
		return nil, bad("kind", "a token's kind is user, project or shared-key")
	}
	name := redact.Text(strings.TrimSpace(n.Name), MaxTokenName)
	if name == "" {
		return nil, bad("name", "give the token a name, so that you know it again")
	}
	scopes, err := checkScopes(n.Scopes)
	if err != nil {
		return nil, err
	}
	projects, err := checkProjects(n, known)
	if err != nil {
		return nil, err
	}
	if err := checkExpiry(n.ExpiresAt, now); err != nil {
		return nil, err
	}
	authority, err := groupOf(have, n, now)
	if err != nil {
		return nil, err
	}
	return []event.Event{event.TokenCreated{Token: n.ID, Kind: n.Kind, Name: name, Hash: n.Hash, Scopes: scopes, AllProjects: n.AllProjects,
		Projects: projects, ExpiresAt: stored(n.ExpiresAt), Authority: authority, Principal: n.Principal}}, nil
}

// checkScopes wants some of the closed set, each once.
func checkScopes(asked []string) ([]string, error) {
	if len(asked) == 0 {
		return nil, bad("scopes", "name the scopes that the token is to have")
	}
	out := slices.Clone(asked)
	slices.Sort(out)
	out = slices.Compact(out)
	for _, s := range out {
		if !call.Scope(s).Valid() {
			return nil, bad("scopes", "there is no scope of that name").WithNext("choose from: %s", strings.Join(call.ScopeNames(), ", "))
		}
	}
	return out, nil
}

// checkProjects wants all, or a list of Projects that are registered here. A grant for
// Projects has to name them.
func checkProjects(n NewToken, known []event.ProjectRegistered) ([]event.ProjectRef, error) {
	switch {
	case n.AllProjects && len(n.Projects) > 0:
		return nil, bad("projects", "all Projects or a list of them, not both")
	case n.AllProjects && n.Kind == event.TokenProject:
		return nil, bad("projects", "a token of kind project is for named Projects")
	case n.AllProjects:
		return nil, nil
	case len(n.Projects) == 0:
		return nil, bad("projects", "name the Projects that the token is for, or all")
	case len(n.Projects) > MaxTokenProjects:
		return nil, bad("projects", "a token names at most "+strconv.Itoa(MaxTokenProjects)+" Projects")
	}
	out := slices.Clone(n.Projects)
	slices.SortFunc(out, func(a, b event.ProjectRef) int { return strings.Compare(a.String(), b.String()) })
	out = slices.Compact(out)
	for _, p := range out {
		if !slices.ContainsFunc(known, func(k event.ProjectRegistered) bool { return k.Project == p }) {
			return nil, fault.New(fault.UnknownProject, "one of the Projects is not registered here").WithField("projects").
				WithNext("`webcodex status` shows those that are served")
		}
	}
	return out, nil
}

func checkExpiry(at, now time.Time) error {
	switch {
	case at.IsZero():
		return nil
	case at.Sub(now) < minTokenLife:
		return bad("expires", "the token would have expired already")
	case at.Sub(now) > MaxTokenLife+time.Hour:
		return bad("expires", "a token lives ten years at most, or says never")
	}
	return nil
}

// groupOf is the authority group: a new one, or that of the shared key to join (AUTH-04).
func groupOf(have []access.Token, n NewToken, now time.Time) (string, error) {
	if n.Group == "" {
		return n.Authority, nil
	}
	if n.Kind != event.TokenSharedKey {
		return "", bad("group", "only a token of kind shared-key joins a group")
	}
	i := slices.IndexFunc(have, func(k access.Token) bool { return k.ID == n.Group })
	if i < 0 || have[i].Kind != event.TokenSharedKey || have[i].Status(now) == access.StatusRevoked {
		return "", bad("group", "the group to join is named by a shared-key token that is not revoked").WithNext("`webcodex token list` shows them")
	}
	return have[i].Authority, nil
}

// Rotation replaces a principal's token.
type Rotation struct {
	ID   event.TokenID
	Hash string
	// ExpiresAt is taken where Given; else what was holds, if it has not passed.
	Given     bool
	ExpiresAt time.Time
}

// DecideRotate gives the principal a new token; the old one is none at once.
func DecideRotate(k access.Token, found bool, r Rotation, now time.Time) ([]event.Event, error) {
	if !found || k.Status(now) == access.StatusRevoked {
		return nil, unknownToken()
	}
	at := k.ExpiresAt
	if r.Given {
		at = r.ExpiresAt
	}
	if err := checkExpiry(at, now); err != nil {
		return nil, err
	}
	return []event.Event{event.TokenRotated{Token: k.ID, Hash: r.Hash, ExpiresAt: stored(at)}}, nil
}

// DecideRevoke ends a token; one that is revoked stays so without a second event.
func DecideRevoke(k access.Token, found bool) ([]event.Event, error) {
	if !found {
		return nil, unknownToken()
	}
	if !k.RevokedAt.IsZero() {
		return nil, nil
	}
	return []event.Event{event.TokenRevoked{Token: k.ID}}, nil
}

func stored(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return event.FormatTime(t)
}

func bad(field, sentence string) *fault.Error {
	return fault.New(fault.InvalidArguments, "%s", sentence).WithField(field)
}

func unknownToken() error {
	return bad("id", "no token that is not revoked has this id").WithNext("`webcodex token list` shows them")
}

// ParseExpiry reads when a token ends: never, 90d, 12h, 1d12h, or an RFC 3339 time. Empty is the
// default. Errors: invalid_arguments.
func ParseExpiry(s string, now time.Time) (time.Time, error) {
	switch s {
	case "never":
		return time.Time{}, nil
	case "":
		return end(now.Add(DefaultTokenLife)), nil
	}
	if d, ok := duration(s); ok {
		return end(now.Add(d)), nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return end(t), nil
	}
	return time.Time{}, bad("expires", "an expiry is never, a duration like 90d, 12h or 1d12h, or an RFC 3339 time")
}

// duration reads one that may begin with days.
func duration(s string) (time.Duration, bool) {
	days := uint64(0)
	if n, rest, ok := strings.Cut(s, "d"); ok {
		var err error
		if days, err = strconv.ParseUint(n, 10, 16); err != nil {
			return 0, false
		}
		if s = rest; s == "" {
			s = "0"
		}
	}
	d, err := time.ParseDuration(s)
	return time.Duration(days)*24*time.Hour + d, err == nil && d >= 0
}

func end(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
