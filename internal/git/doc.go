// Package git is the only place that runs the git binary. A repository is hostile input: its
// configuration can name programs that git would run on a plain status, diff or log. Every
// child here gets a fixed set of flags, an allow-listed environment, no stdin, no terminal,
// its own process group, a deadline and bounded output, so that reading a repository never
// runs anything of it (faults.md 4).
//
// With content filters off, files under a filter (Git LFS and the like) may show as changed;
// Repo.FiltersDisabled says when that can be so.
package git
