// Package shell holds the tools of persistent shells, one file each. A shell lives on the Runner;
// the server starts none, and keeps of one that it was opened, used and ended, never what it was
// told or what it printed (SHL-04, SHL-29).
package shell
