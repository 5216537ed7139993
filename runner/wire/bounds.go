package wire

import "time"

// Times and sizes that both ends of the link must agree on.
const (
	// HelloEvery is how often a Runner says that it lives.
	HelloEvery = 5 * time.Second
	// Lease is how long a Runner counts as connected after its last hello.
	Lease = 3 * HelloEvery
	// GrantWait is how long after its claim a Runner still takes a grant, on the boot clock
	// (faults.md 3.4). The server must have answered before.
	GrantWait = 5 * time.Second
	// ProofWait is how long after an execution's own limit its end may still be proven, before
	// its outcome is called unknown (faults.md 3.8).
	ProofWait = 30 * time.Second
	// MaxResultBody bounds an effect's output inside a Result.
	MaxResultBody = MaxMessage - 32<<10
	// MaxInventory bounds the Jobs and MaxProjects the Projects of one Hello.
	MaxInventory = 2500
	MaxProjects  = 500
	// MaxDiagnostics and MaxFailedTests of a TestReport: the first ones, of however many (VAL-24).
	MaxDiagnostics = 20
	MaxFailedTests = 20
	// MinTimeout and MaxTimeout bound Bounds.TimeoutMS (EXE-37).
	MinTimeout = time.Second
	MaxTimeout = time.Hour
)

// Bounds of ProcessIn that the Runner checks itself, whatever the server has checked (EXE-19,
// EXE-22, EXE-37).
const (
	MaxExecutableBytes = 1024
	MaxArgs            = 256
	MaxArgBytes        = 8192
	MaxArgvBytes       = 16_000
	MaxCwdBytes        = 1024
	MaxScriptBytes     = 512 << 10
	MaxStdinBytes      = 64 << 10
)

// Languages of OpScript and shells of OpShell.
var (
	Languages = []string{"sh", "bash", "powershell", "python", "node"}
	Shells    = []string{"sh", "bash"}
)
