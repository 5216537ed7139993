//go:build linux && !amd64 && !arm64

package proc

// waitingCalls: nobody has written down the numbers of this architecture, so what a thread waits
// for cannot be told.
var waitingCalls map[int64]func(thread, [6]uint64) ([]int, bool)
