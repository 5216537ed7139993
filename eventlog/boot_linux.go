package eventlog

import "os"

// bootID names this life of the operating system; empty where it cannot be told.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return trim(string(b))
}
