// Package proc runs one child process so that it cannot hang, flood or outlive its caller
// unnoticed: own session without a terminal, closed standard input, an allow-listed
// environment, an opened directory instead of a path, bounded output with exact counts, and
// at the end every process that belongs to it is ended or named.
//
// Membership is decided by a control group where there may be one, and by session, process group,
// an environment mark, open pipes and orphanage, never by a remembered pid: a signal goes only to
// a process whose identity was checked (docs/decisions, 26).
package proc
