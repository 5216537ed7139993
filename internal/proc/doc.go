// Package proc runs one child process so that it cannot hang, flood or outlive its caller
// unnoticed: own session without a terminal, closed standard input, an allow-listed
// environment, an opened directory instead of a path, bounded output with exact counts, and
// at the end every process that belongs to it is ended or named.
//
// Membership is decided by session, process group, ancestry and an environment mark, never
// by a remembered pid: a signal goes only to a process whose identity was checked.
package proc
