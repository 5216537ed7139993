// Package evidence judges what the end of a run proves: whether it is what was expected, what
// it says of the tests, and what it may be compared with. Decisions only: no clock, no I/O.
package evidence
