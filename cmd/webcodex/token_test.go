package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/commands/access"
	"webcodex/mcp/client"
	tokens "webcodex/projections/access"
)

// filesAtRest gives every regular file below a directory by its name in it.
func filesAtRest(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path[len(dir):]] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// webcodexJSON runs the program and decodes the one line it prints.
func webcodexJSON[Out any](t *testing.T, args ...string) Out {
	t.Helper()
	var out, said strings.Builder
	if code := runProgram(t.Context(), args, strings.NewReader(""), &out, &said); code != exitOK {
		t.Fatalf("%v: exit status %d: %s", args, code, said.String())
	}
	var v Out
	if err := json.Unmarshal([]byte(out.String()), &v); err != nil {
		t.Fatalf("%v: %q: %v", args, out.String(), err)
	}
	return v
}

// TestTokenCommand: create, list, rotate and revoke do the same with a server and without one,
// and what was done without one holds for the next server.
func TestTokenCommand(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	connect := func(c *child, token string) error {
		m, err := client.Connect(t.Context(), client.Options{URL: c.ready.MCPURL, Token: token})
		if err == nil {
			_ = m.Close()
		}
		return err
	}
	run := func(args ...string) []string {
		return append(append([]string{"token"}, args...), "--data", data, "--json")
	}
	srv := up1(t, repo, data)
	online := webcodexJSON[access.Issued](t, run("create", "--kind", "user", "--name", "on\x1b[31mline", "--projects", "all")...)
	if err := connect(srv, online.Token); err != nil {
		t.Fatal(err)
	}
	project := webcodexJSON[access.Issued](t, run("create", "--kind", "project", "--name", "p", "--projects", srv.ready.Project, "--expires", "never",
		"--scopes", "runtime:read, project:read")...)
	if project.ExpiresAt != nil || len(project.Projects) != 1 || project.Projects[0] != srv.ready.Project || len(project.Scopes) != 2 {
		t.Errorf("%+v", project.TokenView)
	}
	if err := srv.stop(); err != nil {
		t.Fatal(err)
	}
	offline := webcodexJSON[access.Issued](t, run("create", "--kind", "shared-key", "--name", "offline", "--projects", "all")...)
	rotated := webcodexJSON[access.Issued](t, run("rotate", string(online.ID), "--expires", "30d")...)
	gone := webcodexJSON[access.TokenView](t, run("revoke", string(project.ID))...)
	if gone.Status != tokens.StatusRevoked {
		t.Errorf("%+v", gone)
	}
	srv = up1(t, repo, data)
	for token, good := range map[string]bool{online.Token: false, rotated.Token: true, offline.Token: true, project.Token: false} {
		if err := connect(srv, token); (err == nil) != good {
			t.Errorf("%v, want good %v", err, good)
		}
	}
	if gone := webcodexJSON[access.TokenView](t, run("revoke", string(offline.ID))...); gone.Status != tokens.StatusRevoked {
		t.Errorf("%+v", gone)
	}
	if connect(srv, offline.Token) == nil {
		t.Error("a revoked token connected")
	}
	list := webcodexJSON[access.TokenList](t, run("list")...)
	if len(list.Tokens) != 3 {
		t.Errorf("%+v", list)
	}
	var out, said strings.Builder
	if code := runProgram(t.Context(), []string{"token", "list", "--data", data}, strings.NewReader(""), &out, &said); code != exitOK ||
		strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), `on\x1b[31mline`) {
		t.Errorf("%d %q %s", code, out.String(), said.String())
	}
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"no action":    {[]string{"token"}, exitUsage},
		"other action": {[]string{"token", "delete"}, exitUsage},
		"no id":        {run("revoke"), exitUsage},
		"no scopes":    {run("rotate", string(rotated.ID), "--scopes", "runtime:read"), exitUsage},
		"no expiry":    {run("revoke", string(rotated.ID), "--expires", "1d"), exitUsage},
		"no name":      {run("list", "--name", "x"), exitUsage},
		"no such id":   {run("revoke", "wc_tok_"+strings.Repeat("0", 32)), exitUsage},
		"no kind":      {run("create", "--name", "x", "--projects", "all"), exitUsage},
		"no projects":  {run("create", "--name", "x", "--kind", "user"), exitUsage},
		"no log":       {[]string{"token", "list", "--data", filepath.Join(t.TempDir(), "none")}, exitNoServer},
	} {
		out.Reset()
		if code := runProgram(t.Context(), c.args, strings.NewReader(""), &out, &said); code != c.code || out.Len() > 0 {
			t.Errorf("%s: exit status %d, printed %q", name, code, out.String())
		}
	}
	if err := connect(srv, rotated.Token); err != nil {
		t.Errorf("a refused action ended the token: %v", err)
	}
}
