package mcp

import (
	"context"
	"strings"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/mcp/client"
)

// A wait that began with a good token tells nothing of what comes after the token's end; those
// who share the Session go on.
//
// Covers: AUTH-11, MSG-12
func TestAWaitEndsWithItsToken(t *testing.T) {
	for _, version := range []string{Modern, legacy2} {
		r := catalogueRig(t)
		share := func(group string) (access.Issued, *client.Client) {
			i, err := r.second.Create(t.Context(), access.CreateIn{Kind: "shared-key", Name: "one of them", Projects: []string{"all"}, Group: group,
				Scopes: []string{"runtime:read", "project:read", "project:write", "session:collaborate"}})
			if err != nil {
				t.Fatal(err)
			}
			c, err := client.Connect(t.Context(), client.Options{URL: r.url, Token: i.Token, Version: version, Full: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return i, c
		}
		stays, a := share("")
		leaves, b := share(string(stays.ID))
		id := started(t, a)
		var base struct {
			Token string `json:"observation_token"`
		}
		if err := callTool(t, b, "observe_session_messages", map[string]any{"session_id": id}).Decode(&base); err != nil {
			t.Fatal(err)
		}
		wait := func(c *client.Client) chan client.Result {
			out := make(chan client.Result, 1)
			go func() {
				res, err := c.CallTool(context.Background(), "observe_session_messages",
					map[string]any{"session_id": id, "after_observation_token": base.Token, "wait_secs": 60})
				if err != nil { // a session of the legacy eras goes with its token
					res.Text = err.Error()
				}
				out <- res
			}()
			return out
		}
		ended, still := wait(b), wait(a)
		for deadline := time.Now().Add(20 * time.Second); r.srv.cfg.Kernel.Waiters() < 2 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if _, err := r.second.Revoke(t.Context(), access.RevokeIn{ID: string(leaves.ID)}); err != nil {
			t.Fatal(err)
		}
		callTool(t, a, "post_session_message", map[string]any{"session_id": id, "kind": "note", "message": "for those who are left"})
		if res := <-ended; version == Modern && res.Kind() != "session_authority_denied" || strings.Contains(res.Text+string(res.Output), "those who are left") {
			t.Errorf("%s: %s %s", version, res.Text, res.Output)
		}
		if res := <-still; res.IsError || !strings.Contains(res.Text, "those who are left") {
			t.Errorf("%s: %s", version, res.Text)
		}
	}
}
