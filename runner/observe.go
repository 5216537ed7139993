package runner

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// token is where an observer of a job stands. It means nothing in another life, except that of a
// detached Job (logOf).
type token struct {
	instance       event.InstanceID
	version        int
	stdout, stderr int64
}

func (t token) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d %d %d", t.instance, t.version, t.stdout, t.stderr))
}

func parseToken(s string) (t token, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(s) > 200 {
		return token{}, false
	}
	n, err := fmt.Sscanf(string(b), "%s %d %d %d", &t.instance, &t.version, &t.stdout, &t.stderr)
	return t, err == nil && n == 4
}

// observeJobs looks at executions of this life and, if asked to, waits until one of them has
// changed since the observer's token.
func (r *Runner) observeJobs(ctx context.Context, p *Project, in wire.ObserveJobsIn) (wire.ObserveJobsOut, error) {
	items := in.Items[:min(len(in.Items), maxObserved)]
	out := wire.ObserveJobsOut{WaitOutcome: "not_waited"}
	if wait := min(time.Duration(in.WaitMS)*time.Millisecond, maxObserveWait); wait > 0 {
		out.WaitOutcome = r.await(ctx, p, items, wait)
	}
	chars := min(proc.KeptChars, observedChars/max(1, 2*len(items)))
	for _, item := range items {
		v := r.look(p, item, min(max(in.TailLines, 0), maxTailLines), chars)
		if in.Whole {
			r.addSoFar(p, &v)
		}
		out.Items = append(out.Items, v)
	}
	return out, nil
}

// job finds an execution of the Project; another Project's is not there.
func (r *Runner) job(p *Project, id string) *execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.execs[event.ExecutionID(id)]
	if e == nil || e.project.ID != p.ID {
		return nil
	}
	return e
}

func (r *Runner) look(p *Project, item wire.ObserveItem, lines, chars int) wire.JobView {
	e := r.job(p, item.ID)
	if e == nil {
		return r.past(p, item.ID)
	}
	v, version := r.view(e)
	next := token{instance: r.logOf(e), version: version}
	at, ok := parseToken(item.Token)
	var okOut, okErr bool
	if ok && at.instance == next.instance {
		v.StdoutDelta, next.stdout, okOut = e.stdout.From(at.stdout, chars, !v.Terminal)
		v.StderrDelta, next.stderr, okErr = e.stderr.From(at.stderr, chars, !v.Terminal)
	}
	if !okOut || !okErr {
		v.Reset = true
		v.StdoutDelta, next.stdout = lastLines(e.stdout, lines, chars, !v.Terminal)
		v.StderrDelta, next.stderr = lastLines(e.stderr, lines, chars, !v.Terminal)
	}
	v.Token = next.String()
	return v
}

// addSoFar gives the streams of a running job as they would be if it ended now. What arrives
// between the token and this look is told twice, never lost.
func (r *Runner) addSoFar(p *Project, v *wire.JobView) {
	if e := r.job(p, v.ID); e != nil && !v.Terminal {
		v.Outcome = &wire.ProcessOutcome{Started: true, Stdout: stream(e.stdout), Stderr: stream(e.stderr)}
	}
}

// logOf names what the tokens of an execution's observers are of: this life, or the log of a
// detached Job, which outlives it.
func (r *Runner) logOf(e *execution) event.InstanceID {
	if e.log != "" {
		return e.log
	}
	return r.instance
}

// lastLines is the end of a stream and the offset after it.
func lastLines(t *proc.Tail, lines, chars int, open bool) (string, int64) {
	text, end := t.Last(chars, open)
	at := len(text)
	if strings.HasSuffix(text, "\n") {
		at--
	}
	for ; lines > 0 && at > 0; lines-- {
		at = max(0, strings.LastIndexByte(text[:at], '\n'))
	}
	if at > 0 && at < len(text) {
		at++
	}
	return text[at:], end
}

// await blocks until a job differs from its token, or time is over.
func (r *Runner) await(ctx context.Context, p *Project, items []wire.ObserveItem, wait time.Duration) string {
	if len(items) == 0 {
		return "not_waited"
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for slept := false; ; slept = true {
		woken, changed := r.watchAll(ctx, p, items)
		if changed {
			if slept { // what comes in pieces is told in one
				select {
				case <-time.After(observeDebounce):
				case <-ctx.Done():
				}
			}
			return "changed"
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return "timeout"
		}
	}
}

// watchAll reports whether one of the jobs has changed already, or gives a channel that is
// closed when one may have.
func (r *Runner) watchAll(ctx context.Context, p *Project, items []wire.ObserveItem) (<-chan struct{}, bool) {
	woken := make(chan struct{})
	var once sync.Once
	for _, item := range items {
		e := r.job(p, item.ID)
		at, ok := parseToken(item.Token)
		if e == nil || !ok || at.instance != r.logOf(e) {
			return nil, true
		}
		changed, since := e.watch(at)
		if since {
			return nil, true
		}
		go func() {
			select {
			case <-changed:
				once.Do(func() { close(woken) })
			case <-woken:
			case <-ctx.Done():
			}
		}()
	}
	return woken, false
}

// watch reports whether something changed since a token, or gives the channel that says so. The
// channel is there before the streams are looked at: output that comes in between is told by one
// of the two.
func (e *execution) watch(at token) (<-chan struct{}, bool) {
	e.mu.Lock()
	if e.version != at.version || e.result != nil {
		e.mu.Unlock()
		return nil, true
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	changed := e.changed
	e.mu.Unlock()
	return changed, news(e.stdout, at.stdout) || news(e.stderr, at.stderr)
}

// news reports that an observer who stands there would be told something now: the beginning of a
// character is held back until the rest of it comes, and is none.
func news(t *proc.Tail, at int64) bool {
	text, _, kept := t.From(at, 1, true)
	return !kept || text != ""
}
