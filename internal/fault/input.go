package fault

// Kinds of input to an execution: nothing was typed.
const (
	NotInteractive Kind = "execution_not_interactive" // it has no terminal
	ExecutionEnded Kind = "execution_ended"           // it reads nothing any more
)
