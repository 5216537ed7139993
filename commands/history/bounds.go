package history

import "time"

// Bounds of what leaves the log and of the work that it takes.
const (
	// BudgetShare of the log's budget, in percent, is used before its oldest blocks leave,
	// whatever the policy allows: new work is refused at 90.
	BudgetShare = 80
	// TailEvery is how often policy tail begins a round at most, and Tick how often the program
	// looks: with the round itself a minute is kept (EVT-04).
	TailEvery = 20 * time.Second
	Tick      = 10 * time.Second
	// FullTick is how often it looks whether the log is beyond its bound: between 80 and 90 % of
	// a small budget lie few seconds of a busy server.
	FullTick = time.Second
	// Regrowth of the log, in percent of its bound, is waited for after a round that freed no
	// more than it cost.
	Regrowth = 10
	// MaxSkew is how far in the future a commit's time may be believed.
	MaxSkew = time.Hour
	// CarryRate is how many bytes a second are carried while callers are served.
	CarryRate = 4 << 20
	// carryAttempts is how often a state is read again because a caller wrote between its
	// parts; the last attempt holds the record's lock over all of them.
	carryAttempts = 8
	// fillBytes of one commit that fills up a block.
	fillBytes = 64 << 10
	// maxFills bounds the commits that fill up one block: more than the largest block takes.
	maxFills = 256
)
