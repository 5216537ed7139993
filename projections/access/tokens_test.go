package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func tokenID(n int) event.TokenID { return event.TokenID(fmt.Sprintf("%s%032x", event.TokenPrefix, n)) }

func createdToken(n int) event.TokenCreated {
	return event.TokenCreated{Token: tokenID(n), Kind: event.TokenUser, Name: "n", Hash: HashToken(fmt.Sprint("t", n)), Scopes: []string{"runtime:read"},
		AllProjects: true, Authority: AuthorityFingerprint(GroupUser, fmt.Sprint(n)), Principal: PrincipalFingerprint(GroupUser, fmt.Sprint(n)),
		ExpiresAt: event.FormatTime(noon.Add(time.Hour))}
}

// feedTokens applies commits of the access aggregate, one an event, from sequence 1.
func feedTokens(t *Tokens, from uint64, events ...event.Event) uint64 {
	for _, e := range events {
		from++
		agg := event.AccessAggregate()
		if _, ok := e.(event.LogRestored); ok {
			agg = event.LogAggregate()
		}
		t.Apply(from, "h", event.Commit{Aggregate: agg, Version: from, At: noon, Events: []event.Event{e}})
	}
	return from
}

// TestTokenLife: a token is good from its creation to its rotation, revocation or expiry, and
// never again.
func TestTokenLife(t *testing.T) {
	k := NewTokens()
	seq := feedTokens(k, 0, createdToken(1), createdToken(2))
	find := func(secret string, want Status) {
		t.Helper()
		got, ok := k.Find(HashToken(secret))
		if want == "" {
			if ok {
				t.Errorf("%s is still found: %+v", secret, got)
			}
			return
		}
		if !ok || got.Status(noon) != want {
			t.Errorf("%s: %v %s, want %s", secret, ok, got.Status(noon), want)
		}
	}
	find("t1", StatusActive)
	find("t3", "")
	find("", "")
	if got, _ := k.Get(tokenID(1)); got.Status(noon.Add(time.Hour)) != StatusExpired || got.Status(noon.Add(time.Hour-time.Millisecond)) != StatusActive {
		t.Error("the border of the expiry")
	}
	seq = feedTokens(k, seq, event.TokenRotated{Token: tokenID(1), Hash: HashToken("new")})
	find("t1", "")
	find("new", StatusActive)
	if got, _ := k.Get(tokenID(1)); !got.ExpiresAt.IsZero() || got.Principal != createdToken(1).Principal {
		t.Errorf("%+v", got)
	}
	seq = feedTokens(k, seq, event.TokenRevoked{Token: tokenID(1)}, event.TokenRotated{Token: tokenID(1), Hash: HashToken("new")})
	find("new", "")
	find("t2", StatusActive)
	seq = feedTokens(k, seq, event.LogRestored{Epoch: "e"})
	find("t2", "")
	if got, _ := k.Get(tokenID(2)); got.Status(noon) != StatusSuspended {
		t.Errorf("after a restore: %s", got.Status(noon))
	}
	feedTokens(k, seq, event.TokenRotated{Token: tokenID(2), Hash: HashToken("again"), ExpiresAt: "no time"})
	if got, ok := k.Find(HashToken("again")); !ok || got.Status(noon) != StatusExpired {
		t.Error("a time that is none made a token that never ends")
	}
}

// TestRevokedTokensAreBounded: the list does not grow for ever.
func TestRevokedTokensAreBounded(t *testing.T) {
	k, seq := NewTokens(), uint64(0)
	for n := range MaxRevoked + 10 {
		seq = feedTokens(k, seq, createdToken(n), event.TokenRevoked{Token: tokenID(n)})
	}
	if n := len(k.List()); n != MaxRevoked {
		t.Errorf("%d", n)
	}
	if _, ok := k.Get(tokenID(9)); ok {
		t.Error("the one revoked first is still there")
	}
	if _, ok := k.Get(tokenID(10)); !ok {
		t.Error("a later one has gone")
	}
}

var tokenEvents = rapid.Custom(func(t *rapid.T) event.Event {
	n := rapid.IntRange(0, 6).Draw(t, "n")
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0, 1, 2:
		return createdToken(n)
	case 3, 4:
		return event.TokenRotated{Token: tokenID(n), Hash: HashToken(rapid.StringN(1, 3, 3).Draw(t, "secret"))}
	case 5, 6:
		return event.TokenRevoked{Token: tokenID(n)}
	}
	return event.LogRestored{Epoch: "e"}
})

// TestTokensOnDiskAndCarried: at any point the rows of the file, and the state carried forward,
// give the same tokens as the fold from the first event; what comes after is the same too.
func TestTokensOnDiskAndCarried(t *testing.T) {
	db := openState(t)
	rapid.Check(t, func(rt *rapid.T) {
		before, after := rapid.SliceOf(tokenEvents).Draw(rt, "before"), rapid.SliceOf(tokenEvents).Draw(rt, "after")
		whole := NewTokens()
		seq := feedTokens(whole, 0, before...)
		if _, err := db.Exec(`DELETE FROM access_token`); err != nil {
			rt.Fatal(err)
		}
		writeState(rt, db, whole)
		if whole.Capture() != nil {
			rt.Error("something is still to be written")
		}
		loaded := NewTokens()
		if err := loaded.Load(t.Context(), db); err != nil {
			rt.Fatal(err)
		}
		loaded.applied = seq
		form, body, ok, err := whole.Carry(t.Context(), event.AccessAggregate())
		if err != nil || !ok {
			rt.Fatal(ok, err)
		}
		parts, err := event.SplitState(form, body)
		if err != nil {
			rt.Fatal(err)
		}
		carried, at := NewTokens(), seq
		for _, p := range parts {
			at = feedTokens(carried, at, event.AccessCarried{Part: p})
		}
		feedTokens(whole, at, after...)
		feedTokens(loaded, at, after...)
		feedTokens(carried, at, after...)
		for name, got := range map[string]*Tokens{"file": loaded, "carried": carried} {
			if diff := cmp.Diff(whole.List(), got.List()); diff != "" {
				rt.Errorf("%s: %s", name, diff)
			}
			if diff := cmp.Diff(whole.byHash, got.byHash); diff != "" {
				rt.Errorf("%s: %s", name, diff)
			}
		}
	})
}

// TestDamagedTokenRow: a row that is not what was written is told, and no token is taken.
func TestDamagedTokenRow(t *testing.T) {
	db := openState(t)
	k := NewTokens()
	feedTokens(k, 0, createdToken(1), event.TokenRevoked{Token: tokenID(1)}, createdToken(2))
	writeState(t, db, k)
	if _, err := db.Exec(`UPDATE access_token SET body = replace(body, '"revoked_at"', '"revoked_xx"')`); err != nil {
		t.Fatal(err)
	}
	got := NewTokens()
	if err := got.Load(t.Context(), db); !errors.Is(err, state.ErrRow) || len(got.List()) != 0 {
		t.Errorf("%v, %d tokens", err, len(got.List()))
	}
}

func openState(t testing.TB) *sql.DB {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // so that the settings hold: a test's file survives nothing
	for _, s := range append([]string{"PRAGMA synchronous = OFF", "PRAGMA journal_mode = MEMORY"}, NewTokens().Schema()...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func writeState(t interface {
	Fatal(...any)
	Context() context.Context
}, db *sql.DB, k *Tokens) {
	c := k.Capture()
	if c == nil {
		return
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	c.Written()
}

// TestTokenForm: what is minted has the form, is 256 bits of its own, and is found in a text.
func TestTokenForm(t *testing.T) {
	a, b := NewToken(), NewToken()
	if a == b || !IsToken(a) || len(a) != TokenLength || HashToken(a) == HashToken(b) || !event.ValidFingerprint(HashToken(a)) {
		t.Errorf("%d characters", len(a))
	}
	for _, s := range []string{"", a[1:], a + "x", strings.ToUpper(a), a[:TokenLength-1] + "+", a[:TokenLength-1] + "é", " " + a[:TokenLength-1]} {
		if IsToken(s) {
			t.Errorf("%q is taken for a token", s)
		}
	}
	if !HoldsToken("x="+a+"&y") || HoldsToken("x="+a[:TokenLength-1]) {
		t.Error("not found in a text, or found where none is")
	}
	// One domain's hash is not another's, whatever the parts.
	if HashToken("x") == fingerprint(authorityDomain, "x") || fingerprint("d", "ab", "c") == fingerprint("d", "a", "bc") {
		t.Error("two inputs of different meaning have one hash")
	}
}

// FuzzTokenForm: any text is a token or none, and both looks agree.
func FuzzTokenForm(f *testing.F) {
	for _, s := range []string{"", "wcx_", NewToken(), "wcx_" + strings.Repeat("\xff", 43), "wcx_wcx_" + strings.Repeat("a", 43), strings.Repeat("wcx_", 30)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if IsToken(s) {
			if len(s) != TokenLength || !strings.HasPrefix(s, TokenPrefix) || !HoldsToken(s) || strings.ContainsAny(s, " \t\n&=%?#/+") {
				t.Errorf("%q", s)
			}
		}
		if HoldsToken(s) != HoldsToken("x"+s+"&") {
			t.Errorf("%q: its neighbours change what it holds", s)
		}
		if !event.ValidFingerprint(HashToken(s)) {
			t.Errorf("%q has no hash", s)
		}
	})
}
