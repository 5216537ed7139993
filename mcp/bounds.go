package mcp

import "time"

// Bounds of the edge (faults.md 4, shapes.md 3).
const (
	// MaxBody is the bytes of one request body: the largest legal edit fits, nothing else does.
	MaxBody = 4 << 20
	// MaxLegacySessions of the eras with sessions, per principal; the oldest idle one leaves.
	MaxLegacySessions = 64
	// legacySessionIdle ends a session nobody has spoken to; longer than any call may last.
	legacySessionIdle = 90 * time.Minute
	// heartbeatEvery keeps tunnels and hosts with idle limits from cutting a silent call.
	heartbeatEvery = 10 * time.Second
	// firstProgress is after what a person takes for immediate and well before a command
	// becomes a Job; progressEvery keeps what is shown alive.
	firstProgress = time.Second
	progressEvery = 3 * time.Second
	// writeDeadline bounds one write to a client that does not read.
	writeDeadline = 30 * time.Second
	// answerTime bounds how long the end of a server waits for answers on their way out.
	answerTime = 2 * time.Second
	// exchangeLinger is how long the edge remembers a request whose connection has ended
	// while its message may still be on its way to the handler.
	exchangeLinger = time.Minute
	// listTTL is how long a client may cache lists.
	listTTL = time.Minute
	// maxIDBytes bounds a JSON-RPC request id, which is repeated in answers.
	maxIDBytes = 256
	// maxCompletions is what the protocol allows in one completion answer.
	maxCompletions = 100
	// maxCompleted is how many of a caller's newest Sessions one completion looks at.
	maxCompleted = 1000
	// MaxTools and MaxToolsBytes bound the default tools/list (ruling 4); the modern era's, with
	// the envelope in each tool, has MaxEnvelopedBytes.
	MaxTools          = 32
	MaxToolsBytes     = 32 << 10
	MaxEnvelopedBytes = 56 << 10
	// maxSelector is the characters of a Session's id or ref as a caller gives it.
	maxSelector = 128
	// maxWindowName is the bytes of what a host calls a conversation (WIN-03).
	maxWindowName = 256
	// MaxDescription bounds a tool's description, in bytes (tools.md).
	MaxDescription = 1 << 10
	// MaxInstructions bounds the server's instructions, in bytes: hosts cut there.
	MaxInstructions = 2 << 10
)

// Protocol revisions served, newest first. Modern is the first without sessions.
const (
	Modern  = "2026-07-28"
	legacy2 = "2025-11-25"
	legacy1 = "2025-06-18"
)

var versions = []string{Modern, legacy2, legacy1}
