// Package checkpoint keeps the files of a Project as they are at a moment, as git objects under a
// ref of their own, and puts them back (docs/checkpoints.md). Making one touches neither the working
// tree nor the index nor a branch; putting one back changes files alone, all of them or none, by the
// transaction of the other edits.
package checkpoint
