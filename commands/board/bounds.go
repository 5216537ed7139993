package board

import (
	"webcodex/internal/token"
	"webcodex/projections/session"
)

// Bounds of the board's tools.
const (
	// MaxText of a message, a resolution and an answer, in characters (MSG-02, MSG-06).
	MaxText = session.MaxMessageChars
	// MaxTags of a message, and the characters of one (MSG-02).
	MaxTags     = session.MaxTags
	MaxTagChars = session.MaxTagChars
	// MaxKey is the characters of a caller's delivery or completion key (MSG-27, MSG-31).
	MaxKey = 128

	// ListLimit and MaxListLimit are the messages of one list (MSG-05).
	ListLimit    = 50
	MaxListLimit = 100
	// ObserveLimit and MaxObserveLimit are the messages of one look, MaxWaitSecs how long it may
	// wait for one (MSG-15).
	ObserveLimit    = 50
	MaxObserveLimit = 100
	MaxWaitSecs     = 60
	// MaxPageBytes bounds the messages of a list or a look on their real JSON; there is always
	// one.
	MaxPageBytes = session.MaxAnswerBytes
	// MaxToken is the bytes of an observation token (MSG-11).
	MaxToken = token.MaxBytes

	// MaxReplies and MaxReplyBytes, on their real JSON, are the direct replies that an assignment
	// can hold (MSG-30).
	MaxReplies    = 50
	MaxReplyBytes = 64 << 10
	// FenceForm is that of an assignment fence, FenceChars its length (MSG-30).
	FenceForm  = "^" + fencePrefix + "[A-Za-z0-9_-]{43}$"
	FenceChars = len(fencePrefix) + token.FingerprintChars
)
