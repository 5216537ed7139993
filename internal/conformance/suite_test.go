package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// eras are the revisions whose requirements the suite knows and WebCodex serves.
var eras = []string{"2025-11-25", "2026-07-28"}

// The product with its own tools passes everything that its baseline does not name.
func TestSuiteAgainstTheProduct(t *testing.T) {
	n := node(t)
	r := up(t, repository(t))
	url := front(t, r.MCPURL, r.Token)
	for _, era := range eras {
		t.Run(era, func(t *testing.T) { suite(t, n, url, era, "product-baseline-"+era+".yml") })
	}
}

// The same HTTP stack with the suite's fixtures passes everything but the Tasks extension.
func TestSuiteAgainstTheFixtures(t *testing.T) {
	n := node(t)
	r := serve(t, fixtures.program(t, "mcp/internal/fixtureserver"))
	url := front(t, r.MCPURL, r.Token)
	for _, era := range eras {
		t.Run(era, func(t *testing.T) { suite(t, n, url, era, "fixtures-baseline-"+era+".yml") })
	}
}

// A baseline only shrinks: what passes once must go on passing. (The suite itself fails on an
// entry that has become stale.)
func TestBaselinesOnlyShrink(t *testing.T) {
	for name, most := range map[string]int{
		"product-baseline-2025-11-25.yml": 20, "product-baseline-2026-07-28.yml": 43,
		"fixtures-baseline-2025-11-25.yml": 0, "fixtures-baseline-2026-07-28.yml": 9,
	} {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(body), "\n  - "); n > most {
			t.Errorf("%s has %d entries, once it had %d: make the scenario pass", name, n, most)
		}
	}
}

func suite(t *testing.T, n nodeDir, url, era, baseline string) {
	known, err := filepath.Abs(baseline)
	if err != nil {
		t.Fatal(err)
	}
	cli := filepath.Join(n.dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	out, err := n.run(t, 5*time.Minute, cli, "server", "--url", url, "--requirements", era,
		"--expected-failures", known, "-o", t.TempDir())
	if err != nil {
		t.Errorf("the suite: %v\n%s", err, tail(out))
	}
	_, summary, ok := strings.Cut(out, "=== SUMMARY ===")
	if !ok {
		t.Fatal("the suite ran nothing")
	}
	t.Log(summary)
}
