package run

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// WaitJobsIn is the input of wait_for_job_terminal.
type WaitJobsIn struct {
	JobIDs   []string `json:"job_ids"`
	Any      bool     `json:"any,omitempty"`
	WaitSecs *int     `json:"wait_secs,omitempty"`
}

// WaitJobsOut is its output: how the Jobs are when the wait is over.
type WaitJobsOut struct {
	Items       []JobStatus `json:"items"`
	WaitOutcome string      `json:"wait_outcome"` // terminal, timeout
	WaitedMS    int64       `json:"waited_ms"`
	ReadyCount  int         `json:"ready_count"`
	PendingN    int         `json:"pending_count"`
}

// WaitForJobTerminal waits until Jobs have ended, all or any of them. It repeats nothing and ends
// nothing: a wait that is over leaves the Jobs as they are.
var WaitForJobTerminal = call.Spec{
	Name: "wait_for_job_terminal", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, Class: call.Observe,
	In: WaitJobsIn{}, Run: waitForJobTerminal,
}

func waitForJobTerminal(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[WaitJobsIn](c)
	if err != nil {
		return call.Result{}, err
	}
	var jobs []call.Job
	seen := map[string]bool{}
	for _, id := range in.JobIDs {
		if seen[id] {
			continue
		}
		seen[id] = true
		j, err := c.Job(id)
		if err != nil {
			return call.Result{}, err
		}
		jobs = append(jobs, j)
	}
	wait := MaxObserveWaitSecs * time.Second
	if in.WaitSecs != nil {
		wait = time.Duration(min(max(*in.WaitSecs, 0), MaxObserveWaitSecs)) * time.Second
	}
	out := WaitJobsOut{WaitOutcome: timeout}
	began := time.Now()
	if wait > 0 {
		// It waits in a place of its own, which takes none from calls that work.
		err = c.Waiting(func() error {
			ctx, cancel := c.Bounded(ctx, wait)
			defer cancel()
			awaitEnds(ctx, c, jobs, in.Any)
			return nil
		})
	}
	if err != nil {
		return call.Result{}, err
	}
	if ctx.Err() != nil {
		return call.Result{}, fault.Wrap(ctx.Err(), fault.Cancelled, "the call was cancelled")
	}
	out.WaitedMS = time.Since(began).Milliseconds()
	out.Items = statusesOf(ctx, c, jobs)
	for _, s := range out.Items {
		if s.Terminal || s.Status == "" { // what nobody keeps will not end again
			out.ReadyCount++
		} else {
			out.PendingN++
		}
	}
	if out.PendingN == 0 || in.Any && out.ReadyCount > 0 {
		out.WaitOutcome = "terminal"
	}
	return call.Result{Output: out}, nil
}

// awaitEnds returns when all Jobs, or any, have ended, or with ctx. A Runner that is away is asked
// again when it may be back.
func awaitEnds(ctx context.Context, c *call.Call, jobs []call.Job, any bool) {
	groups := byProject(jobs)
	ends := make(chan struct{}, len(groups))
	for _, at := range groups {
		go func() {
			if awaitGroup(ctx, c, jobs, at, any) {
				ends <- struct{}{}
			}
		}()
	}
	need := len(groups)
	if any {
		need = min(need, 1)
	}
	for range need {
		select {
		case <-ends:
		case <-ctx.Done():
			return
		}
	}
}

func awaitGroup(ctx context.Context, c *call.Call, jobs []call.Job, at []int, any bool) bool {
	own := make([]call.Job, 0, len(at))
	for _, i := range at {
		own = append(own, jobs[i])
	}
	all := byProject(own)[0]
	for ctx.Err() == nil {
		deadline, _ := ctx.Deadline()
		_, outcome, err := askStates(ctx, c, own, all, wire.JobStatesIn{Any: any, WaitMS: max(1, time.Until(deadline).Milliseconds())})
		if err == nil && outcome == "terminal" {
			return true
		}
		select {
		case <-time.After(retryStates):
		case <-ctx.Done():
		}
		for i := range own { // the Runner may be another life by now
			if j, err := c.Job(string(own[i].ID)); err == nil {
				own[i] = j
			}
		}
	}
	return false
}
