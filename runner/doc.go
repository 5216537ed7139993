// Package runner executes: it journals every effect before it starts, runs processes, keeps
// the output of those that outlive their call, and serves reads of its Projects. It trusts
// the server's word for nothing it can check itself (AUTH-19), starts each execution id at
// most once (EXE-38) and tells the truth about what it does not know (faults.md 3).
//
// What it can do besides processes is registered by other packages with Effect and Read.
package runner
