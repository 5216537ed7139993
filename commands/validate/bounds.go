// Package validate holds the tools that run a project's tests and say what they proved. The
// exit status decides whether a run passed; what was parsed only explains it (VAL-01). A
// failing test is a result, not an error (ruling 9).
package validate

import (
	"time"

	"webcodex/commands/evidence"
	"webcodex/runner/wire"
)

// Bounds of the validation tools (tools.md).
const (
	DefaultTimeoutSecs = 1800
	MinTimeoutSecs     = int64(wire.MinTimeout / time.Second)
	MaxTimeoutSecs     = int64(wire.MaxTimeout / time.Second)
	MaxCwdBytes        = wire.MaxCwdBytes
	MaxPackages        = 8
	MaxPackageBytes    = 256
	MaxFeatures        = 16
	MaxFeatureBytes    = 128
	MaxFilterBytes     = 256
	// DefaultCheckSecs is for what compiles and runs nothing, DefaultFormatSecs for a formatter, which
	// may write files no longer than MaxFormatSecs.
	DefaultCheckSecs  = 600
	DefaultFormatSecs = 120
	MaxFormatSecs     = 120
	MaxScriptName     = 64
	MaxTestPaths      = 8
	MaxExecutable     = wire.MaxExecutableBytes
	MaxArgs           = wire.MaxArgs
	MaxArgBytes       = wire.MaxArgBytes
	MaxReportBytes    = 1024
	// MaxMinTests bounds min_tests (VAL-13).
	MaxMinTests = evidence.MaxMinTests
)

// ScriptPattern is what npm_test takes as the name of a script.
const ScriptPattern = `^[A-Za-z0-9_][A-Za-z0-9_.:-]*$`

// PackagePattern is what go_test takes as a package: the directory or what lies below it.
const PackagePattern = `^\.(/[^/]+)*/?$`
