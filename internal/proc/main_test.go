package proc_test

import (
	"os"
	"testing"

	"webcodex/internal/leak"
)

// What the tests of this package start is gone when they are over.
func TestMain(m *testing.M) {
	if os.Getenv("PROC_TEST_AS_NOBODY") != "" || os.Getenv("PROC_TEST_ON_TERMINAL") != "" {
		os.Exit(m.Run()) // a part of a test
	}
	os.Exit(leak.Main(m))
}
