package evidence

import "webcodex/projections/session"

// Bounds of what a caller may declare (EXE-32, VAL-13).
const (
	MaxAcceptedExitCodes = session.MaxAcceptedExitCodes
	MaxExitCode          = session.MaxExitCode
	MaxMinTests          = session.MaxMinTests
)
