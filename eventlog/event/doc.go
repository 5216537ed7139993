// Package event holds the vocabulary of the log: ids, event types with their stored names,
// and the commit envelope. It imports nothing of ours. Stored forms are append-only: a type
// or a field, once written, is read forever; a changed meaning gets a new name.
package event

//go:generate go test -run "TestGolden|TestEventsDocument" -update .
