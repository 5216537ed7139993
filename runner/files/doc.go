// Package files is how a Runner reads, searches and changes the files of a Project.
//
// A repository is hostile input and so is a path. Every file is reached from the Project's
// opened root, one component at a time, without following a symbolic link by name: a link is
// read and its target walked, and what leads out of the root is refused. What was checked is
// what is used, because each step holds the opened directory. Nothing below a .git entry, in
// any spelling, nor in a directory that is a git directory, is read or written: whoever can
// write there can execute (faults.md 4, Files).
//
// Changes are all or none across files: everything is checked and staged beside its target
// before the first rename, and undone in reverse when one fails. What a killed process leaves
// half-done, the next one ends before it serves the Project.
package files
