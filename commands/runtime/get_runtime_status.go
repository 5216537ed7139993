// Package runtime holds the tools about the server itself: what runs, since when, and what
// an acknowledgement is worth here.
package runtime

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
	"webcodex/projections/window"
)

// GetRuntimeStatus tells the state of the server, its log and its Runners. It names no
// Session and no path.
var GetRuntimeStatus = &call.Spec{Name: "get_runtime_status", Scopes: []call.Scope{call.ScopeRuntimeRead},
	Plane: call.PlaneRuntime, Class: call.Observe, In: StatusIn{}, Run: runStatus}

// StatusIn are the arguments: none.
type StatusIn struct{}

// Status is the output of get_runtime_status.
type Status struct {
	Version   string           `json:"version"`
	Instance  event.InstanceID `json:"server_instance"`
	StartedAt string           `json:"started_at,omitempty"`
	UptimeS   int64            `json:"uptime_secs"`
	// Accepting is false where new work is refused; the reason is an error kind.
	Accepting     bool       `json:"accepting"`
	RefusalReason fault.Kind `json:"refusal_reason,omitempty"`
	Log           LogStatus  `json:"log"`
	// Durability is what an acknowledgement is worth on this server (SES-47).
	Durability eventlog.Promise  `json:"durability"`
	Sessions   session.Totals    `json:"sessions"`
	Projects   int               `json:"projects"`
	Runners    []call.RunnerInfo `json:"runners"`
	// Loop is what this life of the server saw of the calling window; it tells of no turn.
	Loop window.Loop `json:"window_loop"`
}

// LogStatus says what an acknowledgement survives, and how full the log is.
type LogStatus struct {
	Durability eventlog.Durability `json:"durability"`
	// Survives names the worst that acknowledged work outlives.
	Survives  string `json:"acknowledged_work_survives"`
	Seq       uint64 `json:"seq"`
	SyncedSeq uint64 `json:"synced_seq"`
	Bytes     int64  `json:"bytes"`
	MaxBytes  int64  `json:"max_bytes"`
	FreeBytes int64  `json:"free_bytes"`
	Space     string `json:"space"`
	// Damaged counts the records whose chain broke; webcodex doctor names them.
	Damaged  int  `json:"damaged"`
	TailLost bool `json:"tail_lost"`
	// Ledger is the state of the block ledger, DamagedBlocks how many block files are not what
	// was written, ScrubbedAt when all were last read again.
	Ledger        string `json:"ledger"`
	DamagedBlocks int    `json:"damaged_blocks"`
	ScrubbedAt    string `json:"scrubbed_at,omitempty"`
}

func runStatus(_ context.Context, c *call.Call) (call.Result, error) {
	info := c.ServerInfo()
	l := info.Log
	out := Status{Version: info.Version, Instance: l.Server, Accepting: true, Sessions: sessionsOf(c),
		Projects: registered(c), Runners: runnersOf(c), Loop: c.Loop(),
		Durability: l.Promise,
		Log: LogStatus{Durability: l.Durability, Survives: l.Promise.Survives, Seq: l.Seq, SyncedSeq: l.SyncedSeq, Bytes: l.Bytes,
			MaxBytes: l.MaxBytes, FreeBytes: l.FreeBytes, Space: l.Space, Damaged: len(l.Damaged), TailLost: l.TailLost,
			Ledger: l.Evidence.Ledger, DamagedBlocks: len(l.Evidence.Damaged)}}
	if at := l.Evidence.Scrub.At; !at.IsZero() {
		out.Log.ScrubbedAt = event.FormatTime(at)
	}
	if err := c.Admits(); err != nil {
		out.Accepting, out.RefusalReason = false, fault.KindOf(err)
	}
	if !info.StartedAt.IsZero() {
		out.StartedAt = event.FormatTime(info.StartedAt)
		out.UptimeS = int64(c.Now().Sub(info.StartedAt) / time.Second)
	}
	return call.Result{Output: out}, nil
}

// registered counts the Projects that exist for the caller.
func registered(c *call.Call) (n int) {
	for _, p := range c.Projects() {
		if p.Root != "" {
			n++
		}
	}
	return n
}

// sessionsOf counts what the caller may know of: the owner sees the whole server, anybody else
// the Sessions of their own group in the Projects that exist for them, without where those lie
// (AUTH-15). The limits hold for all.
func sessionsOf(c *call.Call) session.Totals {
	all := c.Sessions().Totals()
	if c.Principal.Owner {
		all.Tombstones = c.Tombstones()
		return all
	}
	t := session.Totals{HotTarget: all.HotTarget, MaxSessions: all.MaxSessions, MaxTail: all.MaxTail}
	mine := c.Sessions().Count(session.Filter{Authority: c.Principal.Actor.Authority, Sees: c.Principal.Sees})
	t.Sessions, t.Active, t.Closed = mine.Active+mine.Closed, mine.Active, mine.Closed
	return t
}

// runnersOf lists the Runners; for a caller with named Projects only those that serve one.
func runnersOf(c *call.Call) []call.RunnerInfo {
	out := []call.RunnerInfo{}
	for _, r := range c.Fleet().Runners() {
		if c.Principal.Only != nil {
			r.Projects = 0
			for _, p := range c.Projects() {
				if p.Ref.Client == r.Client && p.Connected {
					r.Projects++
				}
			}
			if r.Projects == 0 {
				continue
			}
		}
		out = append(out, r)
	}
	return out
}
