package call

import (
	"time"

	"webcodex/projections/session"
)

// Purposes is the closed set of a run's declared purpose (EXE-27).
var Purposes = []string{"validation", "test", "build", "format", "release", "diagnostic", "operation", "other"}

// Bounds of the pipeline.
const (
	// DefaultGrace is how long an answer waits before an execution becomes a Job (tools.md).
	DefaultGrace = 10 * time.Second
	// MaxChangedPaths per finish event (EVT-26); the largest edit touches 32 paths.
	MaxChangedPaths = session.MaxChangedPaths
	// MaxObservedPaths per finish event and the bytes of one (EVT-25).
	MaxObservedPaths = session.MaxObservedPaths
	MaxPathBytes     = 512
	// MaxErrorSummary is the characters of error text on an event (EVT-20).
	MaxErrorSummary = session.MaxTitleChars
	// MaxInputString, MaxInputItems bound Input evidence (EVT-17).
	MaxInputString = session.MaxAtomChars
	MaxInputItems  = session.MaxInputItems
	// MaxCallsPerPrincipal at once (faults.md 4).
	MaxCallsPerPrincipal = 32
	// MaxAcks are the messages that one request can acknowledge by id (ACK-01).
	MaxAcks = 32
	// MaxMaterials are the keys of context materials in one request, MaxMaterialChars the
	// characters of one (CTX-01).
	MaxMaterials     = 8
	MaxMaterialChars = 64
	// MaxWaitersPerPrincipal and MaxWaiters are of calls that only wait (faults.md 4).
	MaxWaitersPerPrincipal = 64
	MaxWaiters             = 2000
)
