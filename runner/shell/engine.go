package shell

import (
	"context"

	"webcodex/internal/proc"
)

// Engine is one living shell and the channels to it.
type Engine interface {
	// Execute gives the shell one command and waits for its end, ctx's, or the shell's. At ctx's
	// end it tries, for Recovery, to bring the command to its end. One at a time; Close may come
	// meanwhile.
	Execute(ctx context.Context, command string, stdout, stderr *proc.Tail) Ended
	// Gone is closed when the shell has ended, or can be reached no more.
	Gone() <-chan struct{}
	// Exit is how that came; once it is gone.
	Exit() Exit
	// Close ends the shell with everything that belongs to it, and returns when it has.
	Close()
}

// Ended is how a command ended.
type Ended struct {
	Status *int // its exit status; nil: its end was not seen
	Late   bool // ctx ended before it did
	// InStep: the shell stands where it should, and takes the next command. Otherwise it is gone,
	// or has to be closed.
	InStep bool
	// Started: the shell was given the command. Where that is false it proves that nothing ran.
	Started bool
}

// Exit is how a shell ended.
type Exit struct {
	Code *int // nil: by a signal, or nobody knows
	// Damaged: something else than its answers came on its control channel, so it was ended.
	Damaged bool
	// Lost: the way to it broke; nobody knows whether it lives.
	Lost bool
	// Unknown: something that it started may live where nobody here can look.
	Unknown bool
}
