package main

import (
	"os"
	"runtime"
)

// superviseName is the command under which this program keeps a detached Job. It is no command for
// people, so no overview lists it.
const superviseName = "supervise"

// supervisor starts this very program, also where another version has taken its place on the disk
// since. Nil where it does not know itself: then no Job is detached.
func supervisor() []string {
	self := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil
		}
	}
	return []string{self, "webcodex", superviseName}
}
