package access

import "time"

// Bounds of second principals.
const (
	// MaxTokens that are not revoked; all of them are in memory.
	MaxTokens = 500
	// MaxTokenName is the characters of a token's name.
	MaxTokenName = 80
	// MaxTokenProjects that one token may name.
	MaxTokenProjects = 64
	// DefaultTokenLife is how long a token lives where nobody said; MaxTokenLife is the longest
	// that can be said, but for "never".
	DefaultTokenLife = 90 * 24 * time.Hour
	MaxTokenLife     = 10 * 365 * 24 * time.Hour
	// minTokenLife keeps a slip of the unit from making a token that is useless at once.
	minTokenLife = time.Minute
	// MaxRunners in other processes that are not revoked.
	MaxRunners = 200
	// DefaultCodeLife is how long an enrolment code is good where nobody said, MaxCodeLife the
	// longest that can be said.
	DefaultCodeLife = 24 * time.Hour
	MaxCodeLife     = 30 * 24 * time.Hour
	// enrolTime bounds the taking of a key.
	enrolTime = 10 * time.Second
	// maxClientName is what of a Runner's name stands in its client id.
	maxClientName = 40
)
