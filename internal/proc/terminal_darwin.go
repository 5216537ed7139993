package proc

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// glance sees nothing: what a process waits for cannot be told here.
func (p *Process) glance(*cell) glance { return glance{} }
