package eventlog

import "golang.org/x/sys/unix"

// bootID names this life of the operating system; empty where it cannot be told.
func bootID() string {
	s, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return trim(s)
}
