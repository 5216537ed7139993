package wire

// Features are the capabilities of a Runner that are no op: what holds its helpers that read
// (search, git, language servers). They cannot write or see the data directory; they cannot open a
// connection.
var Features = []string{"sandbox_files", "sandbox_network"}
