package conformance_test

import (
	"encoding/json"
	"testing"
	"time"
)

// client is a program of others that does the story of node/story.mjs.
type client struct {
	name   string
	script string
	era    string // for the Inspector, which can do both
}

var clients = []client{
	{"TypeScript SDK v1", "v1.mjs", ""},
	{"TypeScript SDK v2", "v2.mjs", ""},
	{"Inspector, legacy", "inspector.mjs", "legacy"},
	{"Inspector, modern", "inspector.mjs", "modern"},
}

// Each client lists the tools and carries a change from the start to the handoff, over both
// transports, on a repository and a log of its own.
func TestClientsOfOthersDoTheJob(t *testing.T) {
	n := node(t)
	bin := webcodex.program(t, "cmd/webcodex")
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			script := n.script(t, c.script)
			t.Run("http", func(t *testing.T) {
				r := up(t, repository(t))
				story(t, n, script, map[string]any{"url": r.MCPURL, "token": r.Token, "era": c.era})
			})
			t.Run("stdio", func(t *testing.T) {
				repo := repository(t)
				r := up(t, repo)
				story(t, n, script, map[string]any{
					"command": bin, "args": []string{"mcp", repo, "--data", r.DataDir}, "era": c.era,
				})
			})
		})
	}
}

func story(t *testing.T, n nodeDir, script string, target map[string]any) {
	t.Helper()
	arg, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	out, err := n.run(t, 3*time.Minute, script, string(arg))
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(out))
	}
	t.Log(tail(out))
}
