package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/projections/access"
)

// TestAccessFile: made once, 0600, kept; what others may read or write is not used; a new
// token keeps the authority.
func TestAccessFile(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenAccess(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, TokenFile)
	for _, name := range []string{TokenFile, ownerFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	b, err := OpenAccess(dir, true)
	if err != nil || b.Token() != a.Token() || b.Principal().Actor != a.Principal().Actor {
		t.Errorf("the second start has other access: %v", err)
	}
	if got, err := ReadToken(dir); err != nil || got != a.Token() {
		t.Errorf("ReadToken: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAccess(dir, true); err == nil || strings.Contains(err.Error(), a.Token()) {
		t.Errorf("a token that others may read was used: %v", err)
	}
	if _, err := ReadToken(dir); err == nil {
		t.Error("ReadToken used it")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c, err := OpenAccess(dir, true)
	if err != nil || c.Token() == a.Token() || c.Principal().Actor != a.Principal().Actor {
		t.Errorf("after removal of the token: %v", err)
	}
	for name, bad := range map[string]string{"empty": "", "short": "wcx_abc", "two lines": c.Token() + "\nx"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenAccess(dir, true); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, ownerFile), path); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAccess(dir, true); err == nil {
		t.Error("a link was followed")
	}
}

// TestLostOwner: with Sessions in the log no other owner takes the place of a lost one; the
// token may be renewed all the same.
func TestLostOwner(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenAccess(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	owner := filepath.Join(dir, ownerFile)
	kept, err := os.ReadFile(owner)
	if err != nil {
		t.Fatal(err)
	}
	for name, lose := range map[string]func() error{
		"removed": func() error { return os.Remove(owner) },
		"emptied": func() error { return os.WriteFile(owner, nil, 0o600) },
	} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		_, err := OpenAccess(dir, false)
		if f := fault.As(err); err == nil || f.Kind != fault.Unavailable || !strings.Contains(f.Message, "owner file") || !strings.Contains(f.Next, "copy") {
			t.Errorf("%s: %v", name, err)
		}
		if name == "removed" {
			if _, err := os.Lstat(owner); err == nil {
				t.Error("a new owner was written")
			}
		}
		if err := os.WriteFile(owner, kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, TokenFile)); err != nil {
		t.Fatal(err)
	}
	if b, err := OpenAccess(dir, false); err != nil || b.Principal().Actor != a.Principal().Actor {
		t.Errorf("put back: %v", err)
	}
}

// TestFingerprints: domain-separated SHA-256 of group and owner, 64 lowercase hex.
//
// Covers: AUTH-01
func TestFingerprints(t *testing.T) {
	owner := strings.Repeat("ab", 16)
	p := newAccess("wcx_"+strings.Repeat("t", 43), owner).Principal()
	sum := sha256.Sum256([]byte("38:webcodex.workflow-session-authority.v19:local-dev32:" + owner))
	if p.Actor.Authority != hex.EncodeToString(sum[:]) {
		t.Errorf("authority %s", p.Actor.Authority)
	}
	if p.Actor.Authority == p.Actor.Principal || len(p.Actor.Principal) != 64 {
		t.Errorf("principal %s", p.Actor.Principal)
	}
	other := newAccess("wcx_"+strings.Repeat("t", 43), strings.Repeat("cd", 16)).Principal()
	if other.Actor.Authority == p.Actor.Authority {
		t.Error("two owners are one group")
	}
	if access.AuthorityFingerprint("ab", "c") == access.AuthorityFingerprint("a", "bc") {
		t.Error("parts run into each other")
	}
	if len(p.Scopes) != 6 || !p.Scopes[call.ScopeJobRun] {
		t.Errorf("scopes %v", p.Scopes)
	}
}
