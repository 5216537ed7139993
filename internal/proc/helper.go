package proc

// WaitExit blocks until a child has ended, without collecting it, so that its id stays taken.
func WaitExit(pid int) { waitExit(pid) }
