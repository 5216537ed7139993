package main

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"webcodex/internal/leak"
)

// TestMain makes the test binary the program itself under the name webcodex, first on the
// PATH: scripts and harnesses run real processes of it. Times are shown as UTC in all of them.
func TestMain(m *testing.M) {
	endAtOnce()
	zone = time.UTC
	testscript.Main(tidy{m}, map[string]func(){"webcodex": main, "bare-jetstream": bareJetStream})
}

// tidy runs the tests and fails them where they leave something. Programs that they kill leave
// scripts for their next life, and test binaries the directory of their other names.
type tidy struct{ m *testing.M }

func (t tidy) Run() int {
	flag.Parse()
	// Most of them wait for processes, syncs and limits much more than they work.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	return leak.Main(t.m, "webcodex-scripts-", "testscript-main")
}

// raceOptions makes a process with the race detector end at once: it sleeps a second else, and
// the tests start many.
const raceOptions = "GORACE=atexit_sleep_ms=0"

func endAtOnce() {
	if name, value, _ := strings.Cut(raceOptions, "="); os.Getenv(name) == "" {
		_ = os.Setenv(name, value)
	}
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
