package main

import (
	"time"

	"webcodex/commands/retention"
	"webcodex/eventlog"
	"webcodex/runner"
	"webcodex/runner/shell"
)

// Config is what an operator may choose for a server, as `up` was told it.
type Config struct {
	// Durability is what an answer promises: always, group or process (faults.md 2.1).
	Durability eventlog.Durability
	// Listen is HOST:PORT on loopback; empty: the port that the data directory remembers.
	Listen string
	// PublicURL is https://NAME under which a tunnel reaches this server; empty: none.
	PublicURL string
	// HotSessions is how many Sessions are kept in memory, 0: none; correctness never depends
	// on it (hot_session_capacity_target, SES-27).
	HotSessions int
	// RetainedSessions is how many Closed Sessions are kept before the oldest are removed
	// (historical_session_retention_limit, SES-33).
	RetainedSessions int
	// Jobs is how many Jobs the Runner runs at once (max_concurrent_jobs).
	Jobs int
	// Shells is how many persistent shells that Runner keeps (max_persistent_shells), ShellIdle how
	// long one may be unused (persistent_shell_idle_timeout; SHL-19).
	Shells    int
	ShellIdle time.Duration
	// History says what of the log is kept beyond what is alive.
	History HistoryConfig
	// LogMaxBytes is the log's budget in bytes; 0: a share of the free space at the first start.
	LogMaxBytes int64
	// ScrubRate is how many bytes a second the background check of the log may read; 0: it is
	// off. ScrubInterval is how often it begins anew.
	ScrubRate     int64
	ScrubInterval time.Duration
	// HostProfile is the guidance profile of MCP hosts that tell none of their own; empty: direct
	// (PRO-03).
	HostProfile string
	// AllowedRoots are the directories below which callers may have Projects registered and made;
	// with a colon between two; empty: nowhere.
	AllowedRoots string
	// Runners says where Runners of other processes connect; by default nowhere.
	Runners RunnersConfig
}

// RunnersConfig is the way in for Runners of other processes.
type RunnersConfig struct {
	// Listen is HOST:PORT with TLS, or nats://HOST:PORT on loopback without; empty: no such way.
	Listen string
	// WSListen is HOST:PORT on loopback, for a proxy that ends HTTPS; empty: no such way.
	WSListen string
	// TLSCert and TLSKey are files in PEM; empty: a certificate of the server's own, which the
	// enrolment codes name.
	TLSCert, TLSKey string
	// URL is the address that enrolment codes tell; empty: that of the listener.
	URL string
}

// HistoryConfig bounds what the log keeps for forensic replay (EVT-04).
type HistoryConfig struct {
	// Policy is full, which keeps what the other two bounds allow, or tail, which keeps what
	// read models still need.
	Policy string
	// MaxAge of a commit that nothing alive needs; 0: no bound.
	MaxAge time.Duration
	// MaxBytes of the whole log before its oldest blocks leave; 0: no bound.
	MaxBytes int64
}

// History policies.
const (
	HistoryFull = "full"
	HistoryTail = "tail"
)

// DefaultConfig is what holds where nobody chose.
func DefaultConfig() Config {
	return Config{
		Durability: eventlog.Always, HotSessions: 100, RetainedSessions: retention.DefaultLimit,
		Jobs:      runner.DefaultJobs,
		Shells:    shell.DefaultMax,
		ShellIdle: shell.DefaultIdle,
		History:   HistoryConfig{Policy: HistoryFull, MaxAge: 90 * 24 * time.Hour, MaxBytes: 4 << 30},
		ScrubRate: 5 << 20, ScrubInterval: 24 * time.Hour,
	}
}

// scrubRate is ScrubRate as the log takes it, where none is a number below 0.
func (c Config) scrubRate() int64 {
	if c.ScrubRate == 0 {
		return -1
	}
	return c.ScrubRate
}
