package shell

import (
	"flag"
	"os"
	"testing"

	"webcodex/internal/leak"
)

// What the tests of this package start is gone when they are over.
func TestMain(m *testing.M) {
	flag.Parse()
	// Most of them wait for limits and processes much more than they work.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(leak.Main(m))
}
