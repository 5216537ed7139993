// Package worktree makes managed worktrees: detached git worktrees in a place of the Runner's own
// choice beside their source, each served as a Project like any other (docs/worktrees.md). What is
// made and where it came from is noted in the Runner's directory before a file is touched, so that
// a later life takes back what broke off, serves again what was finished, and can tell where it
// came from.
package worktree
