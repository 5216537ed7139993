package event

// ShellID names one persistent shell; it is never used again (SHL-14).
type ShellID string

// ShellPrefix begins a ShellID.
const ShellPrefix = "wc_shell_"

// NewShellID mints an id for one persistent shell.
func NewShellID() ShellID { return ShellID(mint(ShellPrefix)) }

// Valid reports whether the id has the form that is minted.
func (id ShellID) Valid() bool { return minted(string(id), ShellPrefix) }

// ShellFacts is what is kept of a call about a persistent shell: its life, never what it was told
// or what it printed (SHL-29).
type ShellFacts struct {
	ID     ShellID `json:"shell_id"`
	Action string  `json:"action"`           // open, execute, close
	State  string  `json:"shell_state"`      // after it
	Reason string  `json:"reason,omitempty"` // why it is no longer open; empty: it is
}
