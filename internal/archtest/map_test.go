package archtest

// entry says why a package is there and which of ours it may import. A pattern that ends in
// "/..." takes the packages below it too. What a package's tests import is not bound by it.
type entry struct {
	why string
	may []string
}

// leaves are the packages that know nothing of WebCodex's domain; anyone may use them.
var leaves = []string{"internal/fault", "internal/ownerfile", "internal/patch", "internal/redact", "internal/peercred", "internal/relpath", "internal/token"}

// importMap is the package map of docs/architecture.md. A package that is not on it fails the
// test until it is, with the reason for it; one that is on it and gone fails too.
var importMap = map[string]entry{
	"eventlog/event": {"ids, event types, stored names, the commit envelope: what the log is made of", nil},
	"eventlog": {"the embedded log: commits, order, durability, the feed of the folds",
		[]string{"eventlog/event"}},

	"projections/session": {"folds and reads of Workflow Sessions",
		[]string{"eventlog", "eventlog/event", "projections/state"}},
	"projections/project": {"folds and reads of Projects and their Runners",
		[]string{"eventlog", "eventlog/event", "projections/state"}},
	"projections/access": {"folds of principals, tokens and refs",
		[]string{"eventlog", "eventlog/event", "projections/state"}},
	"projections/history": {"what the log tells of itself: times of commits, what has left, whether the clock can be trusted",
		[]string{"eventlog", "eventlog/event", "projections/state"}},
	"projections/retention": {"the fold of tombstones",
		[]string{"eventlog", "eventlog/event", "projections/state"}},
	"projections/window": {"the fold of windows: relations, routes, messages between them",
		[]string{"eventlog", "eventlog/event", "projections/state"}},
	"projections/external": {"the fold of what adapters outside report about Sessions",
		[]string{"eventlog", "eventlog/event", "projections/state"}},
	"projections/state": {"state.db: folds on disk, with the checkpoint they stand at",
		[]string{"eventlog", "eventlog/event"}},

	"commands/aggregate": {"decide and append, with the retry of a lost race: the only holder of an appender",
		[]string{"eventlog", "eventlog/event"}},
	"commands/call": {"the fixed pipeline of a tool call over a Spec; no tool logic",
		[]string{"commands/aggregate", "commands/evidence", "eventlog", "eventlog/event", "projections/...", "runner/wire"}},
	"commands/evidence": {"what the end of a run proves: expectation, validation, identities; decisions only",
		[]string{"eventlog/event", "projections/session", "runner/wire"}},
	"commands/execution": {"the server's half of an execution: offer, grant, result, recovery",
		[]string{"commands/aggregate", "commands/call", "eventlog", "eventlog/event", "projections/...", "runner/wire", "runner/link/server"}},
	"commands/access":    {"principals and their tokens, refs: numbers and what they pin", commandMay},
	"commands/attention": {"messages that ask for acknowledgement, beside other answers", commandMay},
	"commands/history":   {"what leaves the log and when: carrying, pruning, erasing", commandMay},
	"commands/retention": {"which Closed Sessions are removed", commandMay},
	"commands/board":     {"tools over a Session's message board", commandMay},
	"commands/external":  {"reports of adapters outside about a Session", commandMay},
	"commands/files":     {"tools over files, search and edits", commandMay},
	"commands/git":       {"tools over the git state of a Project", commandMay},
	"commands/material":  {"context materials beside answers: one registry, each authorised before it is read", append([]string{"commands/access"}, commandMay...)},
	"commands/navigate":  {"tools that ask language servers", commandMay},
	"commands/peer":      {"what windows of a principal are told beside answers, and their messages to each other", commandMay},
	"commands/project":   {"tools over Projects", commandMay},
	"commands/run":       {"tools that run commands and watch Jobs", commandMay},
	"commands/runtime":   {"tools over WebCodex itself: its status", commandMay},
	"commands/session":   {"tools over Workflow Sessions", append([]string{"commands/access", "commands/project"}, commandMay...)},
	"commands/shell":     {"tools of persistent shells", commandMay},
	"commands/validate":  {"tools that run tests and parse what they said", append([]string{"commands/run"}, commandMay...)},

	"commands/checkpoint": {"tools over workspace checkpoints", commandMay},

	"commands/internal/calltest": {"test only: a kernel on a real log, with a Runner that does what a test says",
		append([]string{"commands/retention"}, commandMay...)},

	"runner/wire": {"the messages between server and Runner, shared by both",
		[]string{"eventlog/event"}},
	"runner/link/client": {"the Runner's end of the connection; never pulls in the NATS server",
		[]string{"eventlog/event", "runner/wire"}},
	"runner/link/server": {"the server's end of the connection",
		[]string{"eventlog", "eventlog/event", "runner/wire"}},
	"runner": {"executing: journal, processes, Jobs, and the ops by name",
		[]string{"eventlog/event", "runner/wire", "runner/link/client", "runner/supervise", "internal/proc", "internal/git", "internal/sandbox"}},
	"runner/supervise": {"one detached Job: the process that keeps it, and its directory as a Runner sees it",
		[]string{"eventlog/event", "runner/wire", "internal/proc"}},
	"runner/files": {"files of a Project root: reading, search, edits",
		[]string{"runner", "runner/wire", "internal/proc", "internal/git", "internal/sandbox"}},
	"runner/gitops": {"git ops of a Project root",
		[]string{"eventlog/event", "runner", "runner/wire", "internal/proc", "internal/git"}},
	"runner/checkpoint": {"workspace checkpoints: files as they were, as git objects; putting them back",
		[]string{"eventlog/event", "runner", "runner/wire", "runner/files", "internal/git"}},
	"runner/worktree": {"managed worktrees: made once, noted, served, brought back",
		[]string{"eventlog/event", "runner", "runner/wire", "internal/git"}},
	"runner/lsp": {"language servers: started in the sandbox, told what lies on the disk, asked",
		[]string{"eventlog/event", "runner", "runner/wire", "internal/proc", "internal/sandbox"}},
	"runner/ssh": {"named resources: connections to other machines, and commands there",
		[]string{"eventlog/event", "runner", "runner/wire", "runner/shell", "internal/proc"}},
	"runner/shell": {"persistent shells: one process each, told one command at a time",
		[]string{"eventlog/event", "runner", "runner/wire", "internal/proc"}},
	"runner/ssh/sshtest": {"test only: a real sshd of the test's own", nil},
	"runner/testparse": {"what test programs print, as structured results",
		[]string{"runner", "runner/wire"}},

	"mcp/schema": {"the dialect of JSON schema that tools are written in: normalise and check", nil},
	"mcp": {"the MCP edge: the tool list, both eras, HTTP and stdio",
		[]string{"mcp/schema", "commands/...", "projections/...", "eventlog/event"}},
	"mcp/client": {"an MCP client for call, demo and tests", nil},
	"mcp/internal/fixtureserver": {"test only: the conformance suite's fixtures on our HTTP stack",
		[]string{"mcp", "commands/call", "eventlog", "eventlog/event", "projections/session"}},

	"internal/fault":     {"error kinds and what a caller can do about them", nil},
	"internal/patch":     {"unified diffs: read strictly, applied exactly", nil},
	"internal/ownerfile": {"settings that a Runner's owner writes: read strictly, and told of without a value", nil},
	"internal/redact":    {"secrets out of stored and printed text", nil},
	"internal/relpath":   {"the form of a project-relative path, and every spelling of .git", nil},
	"internal/peercred":  {"who is at the other end of a unix socket", nil},
	"internal/token":     {"opaque texts that a caller gives back: sealed cursors, fingerprints, digests of keys", nil},
	"internal/proc":      {"one child process: own group, bounded output, an end that is an end", nil},
	"internal/git":       {"the git binary with safe flags", []string{"internal/proc", "internal/sandbox"}},
	"internal/sandbox":   {"helpers that only read: no writing, no network, nothing of ours", nil},

	"internal/leak":         {"test only: what tests leave behind", []string{"internal/proc"}},
	"internal/leak/testrun": {"test only: runs all tests and tells what they leave behind", []string{"internal/leak"}},
	"internal/archtest":     {"this test", nil},
	"internal/tooldoc":      {"docs/tools.md from the tool list", nil},
	"internal/bench":        {"the benchmarks behind make bench", []string{"..."}},
	"internal/conformance":  {"clients and suites of others against the real program", []string{"mcp/internal/fixtureserver"}},

	"cmd/webcodex": {"wiring, flags, signals: the program", []string{"..."}},
}

// commandMay is what a package of tools may import: the pipeline, and what it authorises with.
var commandMay = []string{"commands/call", "commands/evidence", "commands/aggregate", "eventlog", "eventlog/event", "projections/...", "runner/wire"}

// libraries that only some of our packages may import, tests included.
var libraries = []struct {
	module string
	why    string
	may    []string
}{
	{"github.com/modelcontextprotocol/go-sdk", "only the MCP edge knows the SDK",
		[]string{"mcp", "mcp/client", "mcp/internal/fixtureserver", "internal/bench", "internal/conformance"}},
	{"github.com/nats-io/nats-server", "only the log embeds the server",
		[]string{"eventlog", "internal/bench"}},
	{"github.com/nats-io", "only the log and the Runner link speak NATS",
		[]string{"eventlog", "runner/link/client", "runner/link/server", "internal/bench"}},
	{"golang.org/x/crypto/ssh", "only named resources speak SSH",
		[]string{"runner/ssh", "runner/ssh/sshtest"}},
	{"modernc.org/sqlite", "only read models live in SQLite; doctor asks for its version",
		[]string{"projections/...", "cmd/webcodex"}},
}
