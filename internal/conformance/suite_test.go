package conformance_test

import (
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
