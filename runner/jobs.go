package runner

import (
	"context"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// view is how an execution of this life is, without its output, and the version of its state.
func (r *Runner) view(e *execution) (wire.JobView, int) {
	var ahead int
	var waiting bool
	if e.offer.Bounds.Job {
		ahead, waiting = r.queue.ahead(e)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v := wire.JobView{ID: string(e.offer.ID), Known: true, State: e.state, AcceptedAt: event.FormatTime(e.accepted)}
	if !e.started.IsZero() {
		v.StartedAt = event.FormatTime(e.started)
	}
	if e.result == nil {
		// Until it starts a Job waits: for its slot, or for the server's word.
		v.Waiting, v.Ahead = waiting || e.offer.Bounds.Job && e.state == wire.JAccepted, ahead
		v.Stopping = e.stopping()
		if v.WaitsForInput = e.waiting; e.waiting {
			text, _ := e.stdout.Text(lastLineChars)
			v.LastLine = proc.LastLine(text)
		}
		return v, e.version
	}
	v.Terminal, v.Outcome, v.Fault, v.EndedAt = true, e.result.Process, e.result.Fault, e.result.EndedAt
	return v, e.version
}

// past is what the journal tells of an execution whose output is no longer kept: it ended long
// ago, or in another life.
func (r *Runner) past(p *Project, id string) wire.JobView {
	known, ok := r.journal.find(event.ExecutionID(id))
	if !ok || known.project != p.ID || !final(known.state) && known.state != wire.JTerminal {
		return wire.JobView{ID: id}
	}
	v := wire.JobView{ID: id, Known: true, State: known.state, Terminal: true, Gone: true, Reset: true}
	if known.result != nil {
		v.Outcome, v.Fault, v.EndedAt = known.result.Process, known.result.Fault, known.result.EndedAt
	}
	return v
}

// glance is view or past.
func (r *Runner) glance(p *Project, id string) wire.JobView {
	if e := r.job(p, id); e != nil {
		v, _ := r.view(e)
		return v
	}
	return r.past(p, id)
}

// jobStates looks at executions and, if asked to, waits until they have ended.
func (r *Runner) jobStates(ctx context.Context, p *Project, in wire.JobStatesIn) (wire.JobStatesOut, error) {
	ids := in.IDs[:min(len(in.IDs), wire.MaxJobStates)]
	out := wire.JobStatesOut{WaitOutcome: "not_waited"}
	if wait := min(time.Duration(in.WaitMS)*time.Millisecond, maxObserveWait); wait > 0 {
		out.WaitOutcome = r.awaitEnd(ctx, p, ids, in.Any, wait)
	}
	for _, id := range ids {
		out.Items = append(out.Items, r.glance(p, id))
	}
	return out, nil
}

// awaitEnd blocks until all the executions, or any of them, have ended. What this life does not
// run has ended.
func (r *Runner) awaitEnd(ctx context.Context, p *Project, ids []string, any bool, wait time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ends := make(chan struct{}, len(ids))
	for _, id := range ids {
		e := r.job(p, id)
		if e == nil {
			ends <- struct{}{}
			continue
		}
		go func() {
			select {
			case <-e.done:
				ends <- struct{}{}
			case <-ctx.Done():
			}
		}()
	}
	need := len(ids)
	if any {
		need = min(need, 1)
	}
	for range need {
		select {
		case <-ends:
		case <-ctx.Done():
			return "timeout"
		}
	}
	return "terminal"
}

// jobLog gives a page of what is kept of the streams.
func (r *Runner) jobLog(_ context.Context, p *Project, in wire.JobLogIn) (wire.JobLogOut, error) {
	e := r.job(p, in.ID)
	if e == nil {
		return wire.JobLogOut{Job: r.past(p, in.ID)}, nil
	}
	v, _ := r.view(e)
	out := wire.JobLogOut{Job: v}
	limit := min(max(in.MaxBytes, minLogBytes), maxLogBytes)
	page := func(name string, t *proc.Tail) *wire.LogPage {
		if in.Stream != "" && in.Stream != name {
			return nil
		}
		var got proc.Page
		if in.Offset != nil {
			got = t.Page(*in.Offset, limit, !v.Terminal)
		} else {
			got = t.LastPage(min(max(in.Lines, 0), maxLogLines), limit, !v.Terminal)
		}
		return &wire.LogPage{Text: got.Text, Offset: got.Offset, NextOffset: got.Next, Bytes: got.Total, Dropped: got.Kept}
	}
	out.Stdout, out.Stderr = page(wire.Stdout, e.stdout), page(wire.Stderr, e.stderr)
	return out, nil
}
