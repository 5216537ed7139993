// Package ownerfile reads what the owner of a Runner writes for it: small TOML files that nobody
// else may write, read again when they have changed. Its errors are for the owner and name keys
// and lines, never a value or a path: what is written there may be a secret.
package ownerfile
