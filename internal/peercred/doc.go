// Package peercred tells who is at the other end of a unix socket.
package peercred
