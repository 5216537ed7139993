package proc

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// BootID names this life of the operating system; empty where it cannot be told.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// BootTime is the time since the system's start, sleep included.
func BootTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
