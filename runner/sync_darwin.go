package runner

import "os"

// syncFile makes a file's data durable (F_FULLFSYNC).
func syncFile(f *os.File) error { return f.Sync() }
