package wire

// OpExecutionInput types on the terminal of an interactive execution of this life.
const OpExecutionInput Op = "execution_input"

// MaxInputBytes bounds what is typed at once: a terminal that reads lines keeps no more of one.
const MaxInputBytes = 4000

// ExecutionInputIn names the execution and what to type. Its text is in no journal.
type ExecutionInputIn struct {
	ID   string `json:"id"`
	Text string `json:"text,omitempty"`
	// Close types the key that ends the input, after the text.
	Close bool `json:"close,omitempty"`
}

// ExecutionInputOut tells how much the terminal took.
type ExecutionInputOut struct {
	AcceptedBytes int `json:"accepted_bytes"`
}

func init() { addOp[ExecutionInputIn, ExecutionInputOut](OpExecutionInput, true) }
