package session

import (
	"flag"
	"os"
	"testing"
)

// TestMain sets how many histories the property tests draw: where -rapid.checks says nothing,
// few in each run, as every run draws others, and many in a soak.
func TestMain(m *testing.M) {
	checks := "15"
	if os.Getenv("WEBCODEX_SOAK") != "" {
		checks = "500"
	}
	_ = flag.Set("rapid.checks", checks)
	os.Exit(m.Run())
}
