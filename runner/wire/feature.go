package wire

// Capabilities of a Runner that are no op: what holds its helpers that read (search, git).
const (
	SandboxFiles   = "sandbox_files"   // they cannot write, nor see the data directory
	SandboxNetwork = "sandbox_network" // they cannot open a socket, or at least no TCP connection
)

// Features are all of them.
var Features = []string{SandboxFiles, SandboxNetwork}
