package eventlog

import "os"

// fdatasync makes a file's data durable: F_FULLFSYNC, the only call here that empties the
// disk's own cache.
func fdatasync(f *os.File) error { return f.Sync() }

// dropCached does nothing: there is no such call here.
func dropCached(string) {}
