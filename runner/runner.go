package runner

import (
	"log/slog"
	"time"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// Parser reads a process's standard output as it streams and says what it saw.
type Parser interface {
	Write(p []byte)
	Report() wire.TestReport
}

// Options of New.
type Options struct {
	// Dir is the Runner's own directory, created 0700: journal, Project ids, keys.
	Dir string
	// Deny lists directories no Project may contain or lie in: the data and config directories.
	Deny []string
	// Client names this Runner.
	Client event.ClientID
	// Build is the program's version, for people.
	Build string
	// Fsync makes each journal state durable against a power cut (durability always).
	Fsync bool
	// Parsers finds the parser that ProcessIn.Parser names; nil knows none.
	Parsers func(kind string) (Parser, bool)
	Logger  *slog.Logger
	// Now is the wall clock of journal entries; nil: time.Now.
	Now func() time.Time
}

// Runner is one life of a Runner.
type Runner struct {
	o       Options
	effects map[wire.Op]operation
	reads   map[wire.Op]operation
}

// New makes a Runner that serves nothing yet: register ops, add Projects, then Serve.
func New(o Options) (*Runner, error) {
	return &Runner{o: o, effects: map[wire.Op]operation{}, reads: map[wire.Op]operation{}}, nil
}
