package run

import (
	"context"
	"slices"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// standing is what a Runner's view of a Job says.
type standing struct {
	Status string               // agent_queued, queued, running, stop_requested, or how it ended
	State  event.ExecutionState // empty where nobody can tell yet: not_started needs proof
	Facts  call.Facts           // where it has ended
}

func standingOf(v wire.JobView) standing {
	switch {
	case v.Terminal:
		facts := call.FactsOf(wire.Result{State: v.State, Process: v.Outcome, Fault: v.Fault, EndedAt: v.EndedAt})
		return standing{Status: statusOf(facts), State: facts.Effect.State, Facts: facts}
	case v.State == wire.JAccepted && v.Stopping:
		return standing{Status: "stop_requested"}
	case v.Waiting:
		return standing{Status: "agent_queued"}
	case v.State == wire.JAccepted || v.State == wire.JStarting:
		return standing{Status: "queued"}
	case v.Stopping:
		return standing{Status: "stop_requested", State: event.Started}
	}
	return standing{Status: "running", State: event.Started}
}

func statusOf(f call.Facts) string {
	switch f.Effect.State {
	case event.TimedOut:
		return "timed_out"
	case event.Cancelled:
		return "cancelled"
	case event.OutcomeUnknown:
		return "lost"
	case event.NotStarted:
		if f.FailureKind == string(event.Cancelled) {
			return "cancelled"
		}
		return "failed"
	}
	if f.FailureKind != "" {
		return "failed"
	}
	return "completed"
}

// JobStatus is how a Job is, without its output.
type JobStatus struct {
	JobID     event.ExecutionID    `json:"job_id"`
	Project   string               `json:"project"`
	SessionID event.SessionID      `json:"session_id,omitempty"`
	Tool      string               `json:"tool"`
	Status    string               `json:"status"`
	State     event.ExecutionState `json:"execution_state,omitempty"` // absent while nobody can tell
	Terminal  bool                 `json:"terminal"`
	JobsAhead *int                 `json:"jobs_ahead,omitempty"` // while it waits for a slot
	InputState
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// FailureKind and ErrorKind say why an end is none of success.
	FailureKind string     `json:"failure_kind,omitempty"`
	ErrorKind   fault.Kind `json:"error_kind,omitempty"`
	AcceptedAt  string     `json:"accepted_at,omitempty"`
	StartedAt   string     `json:"started_at,omitempty"`
	EndedAt     string     `json:"ended_at,omitempty"`
	DurationMS  *int64     `json:"duration_ms,omitempty"`
	// Log is kept or gone; absent where its Runner cannot be asked.
	Log         string `json:"log,omitempty"`
	StdoutBytes *int64 `json:"stdout_bytes,omitempty"` // of one that ended
	StderrBytes *int64 `json:"stderr_bytes,omitempty"`
	// RecoveryState is recovering while nobody can say how it is, which RecoveryReason explains, and
	// reconciled where its Runner told it to a later server than the one that began it.
	RecoveryState  string `json:"recovery_state,omitempty"`
	RecoveryReason string `json:"recovery_reason_code,omitempty"`
}

// Recovery states and reasons.
const (
	recovering    = "recovering"
	reconciled    = "reconciled"
	runnerAway    = "runner_transport_disconnected"
	serverChanged = "server_restart_reconciliation"
)

// Log words.
const (
	logKept = "kept"
	logGone = "gone"
)

func ofJob(j call.Job) JobStatus {
	return JobStatus{JobID: j.ID, Project: j.Target.Ref.String(), SessionID: j.Session, Tool: j.Tool}
}

// seen is the status of a Job by its Runner's word.
func seen(j call.Job, v wire.JobView) JobStatus {
	s, at := ofJob(j), standingOf(v)
	s.Status, s.State, s.Terminal = at.Status, at.State, v.Terminal
	s.AcceptedAt, s.StartedAt, s.EndedAt = v.AcceptedAt, v.StartedAt, v.EndedAt
	s.ExitCode, s.FailureKind, s.ErrorKind = at.Facts.ExitCode, at.Facts.FailureKind, fault.Kind(at.Facts.ErrorKind)
	if v.Waiting {
		s.JobsAhead = &v.Ahead
	}
	if p := v.Outcome; p != nil {
		s.Signal, s.DurationMS, s.StdoutBytes, s.StderrBytes = p.Signal, &p.DurationMS, &p.Stdout.Bytes, &p.Stderr.Bytes
	}
	s.InputState = inputState(v)
	if j.Past {
		s.RecoveryState = reconciled
	}
	if s.Log = logKept; v.Gone {
		s.Log = logGone
	}
	return s
}

// recorded is the status of a Job that ended by what its Session keeps; false: it does not.
func recorded(c *call.Call, j call.Job) (JobStatus, bool) {
	e, core, ok := c.Sessions().Ended(j.ID)
	if !ok || core.Authority != j.Authority {
		return JobStatus{}, false
	}
	s := ofJob(j)
	s.Status = statusOf(call.Facts{FailureKind: e.FailureKind, Effect: event.Effect{State: e.State}})
	s.State, s.Terminal, s.ExitCode, s.FailureKind, s.Log = e.State, true, e.ExitCode, e.FailureKind, logGone
	if e.State != event.OutcomeUnknown {
		s.DurationMS = &e.DurationMS
	}
	return s, true
}

// unseen is the status of a Job whose Runner cannot be asked, or keeps nothing of it.
func unseen(c *call.Call, j call.Job, err error) JobStatus {
	if s, ok := recorded(c, j); ok {
		return s
	}
	s := ofJob(j)
	if err == nil {
		s.ErrorKind = fault.UnknownJob
		return s
	}
	s.Status, s.RecoveryState, s.RecoveryReason = recovering, recovering, runnerAway
	if j.Past {
		s.RecoveryReason = serverChanged
	}
	return s
}

// statusesOf asks the Runners how Jobs are, each once for all of one Project.
func statusesOf(ctx context.Context, c *call.Call, jobs []call.Job) []JobStatus {
	out := make([]JobStatus, len(jobs))
	for _, at := range byProject(jobs) {
		views, _, err := askStates(ctx, c, jobs, at, wire.JobStatesIn{})
		for n, i := range at {
			if err == nil && n < len(views) && views[n].Known {
				out[i] = seen(jobs[i], views[n])
			} else {
				out[i] = unseen(c, jobs[i], err)
			}
		}
	}
	return out
}

// byProject groups the places of Jobs by their Projects, at most wire.MaxJobStates together.
func byProject(jobs []call.Job) [][]int {
	var out [][]int
	for i, j := range jobs {
		at := slices.IndexFunc(out, func(g []int) bool {
			return jobs[g[0]].Target.Ref == j.Target.Ref && len(g) < wire.MaxJobStates
		})
		if at < 0 {
			at, out = len(out), append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	return out
}

func askStates(ctx context.Context, c *call.Call, jobs []call.Job, at []int, in wire.JobStatesIn) ([]wire.JobView, string, error) {
	for _, i := range at {
		in.IDs = append(in.IDs, string(jobs[i].ID))
	}
	out, err := call.AskTarget[wire.JobStatesOut](ctx, c, jobs[at[0]].Target, wire.OpJobStates, in, time.Duration(in.WaitMS)*time.Millisecond+statesWait)
	return out.Items, out.WaitOutcome, err
}
