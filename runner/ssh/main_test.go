package ssh

import (
	"os"
	"testing"

	"webcodex/internal/leak"
)

// What the tests of this package start is gone when they are over.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
