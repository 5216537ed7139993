package proc

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// BootID names this life of the operating system; empty where it cannot be told.
func BootID() string {
	s, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

// BootTime is the time since the system's start, sleep included.
func BootTime() time.Duration {
	var ts unix.Timespec
	// CLOCK_MONOTONIC goes on during sleep here.
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
