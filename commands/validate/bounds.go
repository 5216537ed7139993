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
	// MaxMinTests bounds min_tests (VAL-13).
	MaxMinTests = evidence.MaxMinTests
)

// PackagePattern is what go_test takes as a package: the directory or what lies below it.
const PackagePattern = `^\.(/[^/]+)*/?$`
