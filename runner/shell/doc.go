// Package shell keeps persistent shells for a Runner: one real sh or bash for each Session that
// opens one, told one command at a time over channels of its own, and ended with everything that
// it started (SHL-01..31). It never runs what run_shell or a Job runs (SHL-13), keeps nothing
// that outlives its process, and has no terminal. How the end of a command is known and where
// its output ends is in docs/decisions/0032-where-a-command-ends.md.
package shell
