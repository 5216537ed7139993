package leak

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"webcodex/internal/proc"
)

func TestMain(m *testing.M) {
	if os.Getenv("LEAK_TEST_WHOLE") == "" {
		os.Exit(m.Run())
	}
	patience = 200 * time.Millisecond
	os.Exit(Main(m))
}

// leaks are what a test may leave, by what is said of it.
var leaks = map[string]func(t *testing.T){
	"": func(*testing.T) {},
	"(sleep), begun": func(t *testing.T) {
		if err := exec.Command("sleep", "5").Start(); err != nil {
			t.Fatal(err)
		}
	},
	"(sleep)": func(t *testing.T) { // of a child that is gone
		adopt(t)
		if err := exec.Command("sh", "-c", "setsid sleep 5 >/dev/null 2>&1 & sleep 0.1").Run(); err != nil {
			t.Fatal(err)
		}
	},
	"open file pipe:": func(t *testing.T) {
		var fds [2]int
		if err := syscall.Pipe(fds[:]); err != nil {
			t.Fatal(err)
		}
	},
	"control group ": func(t *testing.T) {
		dir, err := os.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := proc.Prepare(proc.Command{Mark: "left", Executable: "true", Dir: dir, Env: os.Environ()}); err != nil {
			t.Fatal(err)
		}
		_ = dir.Close()
		if len(proc.ControlGroups()) == 0 {
			t.Skip("there are none here")
		}
	},
	"temporary file webcodex-x": func(t *testing.T) {
		if _, err := os.MkdirTemp("", "webcodex-x"); err != nil {
			t.Fatal(err)
		}
	},
}

// TestLeaves leaves what its environment says, for the tests below.
func TestLeaves(t *testing.T) {
	what, asked := os.LookupEnv("LEAK_TEST_WHAT")
	if !asked {
		t.Skip("for the tests below")
	}
	if os.Getenv("LEAK_TEST_WHOLE") == "" {
		patience = 200 * time.Millisecond
		Check(t)
	}
	leaks[what](t)
}

// Each kind of thing that a test may leave is found, after it and after all, and nothing else is.
func TestWhatIsLeftIsFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is left cannot be told there")
	}
	for what := range leaks {
		for _, whole := range []string{"", "1"} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestLeaves$", "-test.v")
			cmd.Env = append(os.Environ(), "LEAK_TEST_WHAT="+what, "LEAK_TEST_WHOLE="+whole)
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "--- SKIP") {
				continue
			}
			if found := err != nil && strings.Contains(string(out), what); found != (what != "") || what == "" && err != nil {
				t.Errorf("%q, whole %q: %v\n%s", what, whole, err, out)
			}
		}
	}
}

// adopt makes orphans fall to this process, as the first execution does.
func adopt(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	p, err := proc.Prepare(proc.Command{Mark: "x", Executable: "true", Dir: dir, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	p.Abandon()
}
