package main

import (
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary the program itself under the name webcodex, first on the
// PATH: scripts and harnesses run real processes of it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"webcodex": main, "bare-jetstream": bareJetStream})
}

// program is the path of the program under test.
func program(t testing.TB) string {
	t.Helper()
	exe, err := exec.LookPath("webcodex")
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
