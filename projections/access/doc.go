// Package access folds who may come in: principals, the hashes of their tokens, and the refs
// that were handed out to them.
package access
