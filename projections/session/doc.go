// Package session folds a Workflow Session's events into what decisions see (Core, small)
// and what reads show (the tail), and projects the handoff brief. Folds are pure: no clock,
// no I/O, no randomness.
package session
