package git

import "syscall"

// nonblock keeps an open of a FIFO from hanging.
const nonblock = syscall.O_NONBLOCK
