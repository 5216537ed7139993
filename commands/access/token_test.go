package access_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/access"
	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	fold "webcodex/projections/access"
)

var (
	noon  = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	site  = event.ProjectRef{Client: "box", Project: "site-1"}
	known = []event.ProjectRegistered{{Project: site, Name: "site", Root: "r"}}
)

func wanted(change func(*access.NewToken)) access.NewToken {
	n := access.NewToken{ID: event.NewTokenID(), Hash: fold.HashToken("t"), Kind: event.TokenUser, Name: "Ada", Scopes: []string{"runtime:read"},
		AllProjects: true, ExpiresAt: noon.Add(time.Hour), Authority: strings.Repeat("a", 64), Principal: strings.Repeat("b", 64)}
	change(&n)
	return n
}

// TestDecideCreate: what is granted is bounded, from closed sets and of this place; a shared
// key may join the group of another one and nothing else joins anything.
func TestDecideCreate(t *testing.T) {
	shared := fold.Token{ID: event.NewTokenID(), Kind: event.TokenSharedKey, Hash: "h", Authority: strings.Repeat("c", 64)}
	user := fold.Token{ID: event.NewTokenID(), Kind: event.TokenUser, Hash: "h", Authority: strings.Repeat("d", 64)}
	gone := fold.Token{ID: event.NewTokenID(), Kind: event.TokenSharedKey, Authority: strings.Repeat("e", 64), RevokedAt: noon}
	have := []fold.Token{shared, user, gone}
	many := make([]event.ProjectRef, access.MaxTokenProjects+1)
	for i := range many {
		many[i] = event.ProjectRef{Client: "box", Project: event.ProjectID(fmt.Sprint("p", i))}
	}
	for name, c := range map[string]struct {
		change func(*access.NewToken)
		kind   fault.Kind
		field  string
	}{
		"kind":                   {func(n *access.NewToken) { n.Kind = "root" }, fault.InvalidArguments, "kind"},
		"no name":                {func(n *access.NewToken) { n.Name = " \t" }, fault.InvalidArguments, "name"},
		"no scope":               {func(n *access.NewToken) { n.Scopes = nil }, fault.InvalidArguments, "scopes"},
		"unknown scope":          {func(n *access.NewToken) { n.Scopes = []string{"runtime:read", "everything"} }, fault.InvalidArguments, "scopes"},
		"no project":             {func(n *access.NewToken) { n.AllProjects = false }, fault.InvalidArguments, "projects"},
		"all and some":           {func(n *access.NewToken) { n.Projects = []event.ProjectRef{site} }, fault.InvalidArguments, "projects"},
		"grant for all":          {func(n *access.NewToken) { n.Kind = event.TokenProject }, fault.InvalidArguments, "projects"},
		"unknown project":        {func(n *access.NewToken) { n.AllProjects, n.Projects = false, many[:1] }, fault.UnknownProject, "projects"},
		"too many projects":      {func(n *access.NewToken) { n.AllProjects, n.Projects = false, many }, fault.InvalidArguments, "projects"},
		"expired":                {func(n *access.NewToken) { n.ExpiresAt = noon }, fault.InvalidArguments, "expires"},
		"too long":               {func(n *access.NewToken) { n.ExpiresAt = noon.AddDate(11, 0, 0) }, fault.InvalidArguments, "expires"},
		"user joins":             {func(n *access.NewToken) { n.Group = shared.ID }, fault.InvalidArguments, "group"},
		"joins a user":           {func(n *access.NewToken) { n.Kind, n.Group = event.TokenSharedKey, user.ID }, fault.InvalidArguments, "group"},
		"joins a revoked one":    {func(n *access.NewToken) { n.Kind, n.Group = event.TokenSharedKey, gone.ID }, fault.InvalidArguments, "group"},
		"joins one that is none": {func(n *access.NewToken) { n.Kind, n.Group = event.TokenSharedKey, event.NewTokenID() }, fault.InvalidArguments, "group"},
	} {
		events, err := access.DecideCreate(have, known, wanted(c.change), noon)
		if f := fault.As(err); err == nil || f.Kind != c.kind || f.Field != c.field || events != nil {
			t.Errorf("%s: %v %v", name, events, err)
		}
	}
	full := make([]fold.Token, access.MaxTokens)
	if _, err := access.DecideCreate(full, known, wanted(func(*access.NewToken) {}), noon); fault.KindOf(err) != fault.StorageFull {
		t.Errorf("one more than the bound: %v", err)
	}
	for i := range full {
		full[i].RevokedAt = noon
	}
	if _, err := access.DecideCreate(full, known, wanted(func(*access.NewToken) {}), noon); err != nil {
		t.Errorf("revoked ones count: %v", err)
	}
	n := wanted(func(n *access.NewToken) {
		n.Kind, n.Group, n.AllProjects, n.Projects = event.TokenSharedKey, shared.ID, false, []event.ProjectRef{site, site}
		n.Scopes = []string{"runtime:read", "job:run", "job:run"}
		n.Name = "  key ghp_R4nD0mT0kenValue1234567890abcdefAB " + strings.Repeat("x", 200)
	})
	events, err := access.DecideCreate(have, known, n, noon)
	if err != nil {
		t.Fatal(err)
	}
	e := events[0].(event.TokenCreated)
	want := event.TokenCreated{Token: n.ID, Kind: event.TokenSharedKey, Name: e.Name, Hash: n.Hash, Scopes: []string{"job:run", "runtime:read"},
		Projects: []event.ProjectRef{site}, ExpiresAt: event.FormatTime(noon.Add(time.Hour)), Authority: shared.Authority, Principal: n.Principal}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(e.Name, "R4nD0m") || len([]rune(e.Name)) > access.MaxTokenName || e.Name == "" {
		t.Errorf("name %q", e.Name)
	}
}

// TestParseExpiry: never, days, a duration, a time, and nothing else.
func TestParseExpiry(t *testing.T) {
	for s, want := range map[string]time.Time{"never": {}, "": noon.Add(access.DefaultTokenLife), "30d": noon.Add(30 * 24 * time.Hour),
		"12h": noon.Add(12 * time.Hour), "2027-01-02T03:04:05+01:00": time.Date(2027, 1, 2, 2, 4, 5, 0, time.UTC)} {
		if got, err := access.ParseExpiry(s, noon); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v %v", s, got, err)
		}
	}
	for _, s := range []string{"d", "-3d", "1e9d", "99999999d", "tomorrow", "2027-01-02", "Never", "0x3d"} {
		if got, err := access.ParseExpiry(s, noon); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// TestTokensOverTheLog: given a log, when tokens are created, rotated and revoked, then the log
// has what happened and no token, and another life of it knows the same.
func TestTokensOverTheLog(t *testing.T) {
	dir, now := t.TempDir(), noon
	open := func() (*eventlog.Log, *access.Tokens) {
		f := fold.NewTokens()
		log, err := eventlog.Open(t.Context(), eventlog.Options{Dir: dir, Durability: eventlog.Process, MaxBytes: 64 << 20,
			Server: event.NewInstanceID(), Folds: []eventlog.Fold{f}})
		if err != nil {
			t.Fatal(err)
		}
		clock := func() time.Time { return now }
		return log, access.NewTokens(aggregate.NewWriter(log, clock), f, func() []event.ProjectRegistered { return known },
			event.Actor{Authority: "a", Principal: "p", Credential: "owner"}, clock)
	}
	log, tokens := open()
	in := access.CreateIn{Kind: "project", Name: "review", Scopes: []string{"project:read"}, Projects: []string{site.String()}, Expires: "2h"}
	a, err := tokens.Create(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if !fold.IsToken(a.Token) || !a.ID.Valid() || a.Status != fold.StatusActive || fmt.Sprint(a) != "token "+string(a.ID) {
		t.Errorf("%v %s", a, a.Status)
	}
	b, err := tokens.Rotate(t.Context(), access.RotateIn{ID: string(a.ID)})
	if err != nil || b.Token == a.Token || b.ID != a.ID || *b.ExpiresAt != *a.ExpiresAt {
		t.Errorf("%v %v", b, err)
	}
	now = noon.Add(3 * time.Hour)
	if _, err := tokens.Rotate(t.Context(), access.RotateIn{ID: string(a.ID)}); fault.As(err).Field != "expires" {
		t.Errorf("a rotation that leaves it expired: %v", err)
	}
	if c, err := tokens.Rotate(t.Context(), access.RotateIn{ID: string(a.ID), Expires: "never"}); err != nil || c.ExpiresAt != nil || c.Status != fold.StatusActive {
		t.Errorf("%v %v", c, err)
	}
	for range 2 { // desired state: the second one writes nothing
		if v, err := tokens.Revoke(t.Context(), access.RevokeIn{ID: string(a.ID)}); err != nil || v.Status != fold.StatusRevoked {
			t.Errorf("%v %v", v, err)
		}
	}
	head, _ := log.Head(event.AccessAggregate())
	if head.Version != 4 {
		t.Errorf("%d commits", head.Version)
	}
	for _, err := range []error{
		func() error {
			_, err := tokens.Rotate(t.Context(), access.RotateIn{ID: string(a.ID), Expires: "1h"})
			return err
		}(),
		func() error { _, err := tokens.Revoke(t.Context(), access.RevokeIn{ID: "wc_tok_x"}); return err }(),
	} {
		if f := fault.As(err); f.Kind != fault.InvalidArguments || f.Field != "id" {
			t.Errorf("%v", err)
		}
	}
	before := tokens.List()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	log, tokens = open()
	defer log.Close()
	if diff := cmp.Diff(before, tokens.List()); diff != "" {
		t.Error(diff)
	}
	err = log.Replay(t.Context(), eventlog.Range{}, func(e eventlog.Entry) error {
		body, err := e.Commit.Encode()
		for _, secret := range []string{a.Token, b.Token} {
			if strings.Contains(string(body), secret) || strings.Contains(string(body), strings.TrimPrefix(secret, fold.TokenPrefix)) {
				t.Errorf("commit %d holds a token", e.Seq)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
