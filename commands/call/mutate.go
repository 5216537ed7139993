package call

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// told is what an answer's control says of one mutation.
type told struct {
	Kind    string `json:"kind,omitempty"`
	Success bool   `json:"success"`
	// Output holds a few members of the tool's own output, none of them free text.
	Output map[string]json.RawMessage `json:"output,omitempty"`
	// The refusal, where it was refused.
	ErrorKind fault.Kind `json:"error_kind,omitempty"`
	Reason    string     `json:"reason_code,omitempty"`
	Field     string     `json:"field,omitempty"`
	Error     string     `json:"error,omitempty"`
	// Skipped tells why it was not tried.
	Skipped string `json:"skipped,omitempty"`
}

// Why an after-success mutation was not tried (CTL-05).
const (
	skippedFailed  = "main_failed"
	skippedRunning = "main_still_running"
)

// before makes the mutations that come before the tool. A refused one stops it: the error
// then says which, and what was changed so far.
func (c *Call) before(ctx context.Context) error {
	for _, m := range c.req.Envelope.Before {
		f := c.mutate(ctx, m)
		if f == nil {
			continue
		}
		stop := *f
		stop.StateChanged = stop.StateChanged || c.mutated
		stop.Message += "; the tool was not called"
		if stop.ExecutionState == "" {
			stop.ExecutionState = string(event.NotStarted)
		}
		return &stop
	}
	return nil
}

// after makes the mutations that wait for the tool's success. Whatever comes of them stands
// beside the tool's own result (CTL-06).
func (c *Call) after(ctx context.Context, res Result, err error) {
	for _, m := range c.req.Envelope.After {
		switch {
		case err != nil || res.Failed:
			c.tell(m, told{Skipped: skippedFailed})
		case res.Facts.Promoted:
			c.tell(m, told{Skipped: skippedRunning})
		default:
			_ = c.mutate(ctx, m)
		}
	}
}

// mutate makes one mutation as a call of its own, admitted like any other. The evidence is
// the main call's; authorship is its recorder's.
func (c *Call) mutate(ctx context.Context, m Mutation) *fault.Error {
	n := &Call{kernel: c.kernel, req: Request{Spec: m.Spec, Args: m.Args, Principal: c.Principal, Transport: c.Transport, Window: c.req.Window},
		Args: m.Args, Principal: c.Principal, Transport: c.Transport, Invocation: c.Invocation, ID: event.NewCallID(),
		Started: c.kernel.cfg.Now(), Recorder: c.Recorder, nested: true, settled: c.settled}
	n.req.Envelope.Field = c.req.Envelope.Field
	res, err := n.alone(ctx)
	c.mutated = c.mutated || n.mutated
	if err != nil {
		f := *fault.As(err)
		if f.Field != c.req.Envelope.Field || f.Field == "" {
			f.Field = within(m.At, f.Field)
		}
		c.tell(m, told{ErrorKind: f.Kind, Reason: f.Reason, Field: f.Field, Error: f.Message})
		return &f
	}
	c.tell(m, told{Success: true, Output: members(res.Output, m.Keep)})
	return nil
}

// alone is do without what belongs to a request: slots, evidence, additions.
func (c *Call) alone(ctx context.Context) (res Result, err error) {
	if c.req.Spec == nil {
		return Result{}, fault.New(fault.Unavailable, "this server has nothing of that kind")
	}
	if err := c.admit(ctx); err != nil {
		return Result{}, err
	}
	if err := c.guard(ctx); err != nil {
		return Result{}, err
	}
	err = c.run(ctx, &res)
	return res, err
}

func (c *Call) tell(m Mutation, t told) {
	t.Kind = m.Kind
	if c.control == nil {
		c.control = map[string]told{}
	}
	c.control[m.Slot] = t
}

func within(at, field string) string {
	if field == "" {
		return at
	}
	return at + "." + field
}

// members picks some members of an output.
func members(output any, keep []string) map[string]json.RawMessage {
	enc, err := marshal(output)
	if err != nil {
		return nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(enc, &all) != nil {
		return nil
	}
	out := map[string]json.RawMessage{}
	for _, name := range keep {
		if v, ok := all[name]; ok {
			out[name] = v
		}
	}
	return out
}

// settleAfter makes the after-success mutations within a time of their own: the caller may be
// gone by now, and the tool has succeeded all the same.
func (c *Call) settleAfter(ctx context.Context, res Result, err error) {
	if len(c.req.Envelope.After) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mutateTimeout)
	defer cancel()
	c.after(ctx, res, err)
}

// mutateTimeout bounds the mutations after the tool.
const mutateTimeout = 30 * time.Second

// Note is Decide for what an answer's additions leave behind them: the call has its evidence by
// then, and needs none for this.
func (c *Call) Note(ctx context.Context, a event.Aggregate, decide aggregate.Decide) (eventlog.Receipt, error) {
	if err := c.kernel.cfg.Log.Admit(); err != nil {
		return eventlog.Receipt{}, err
	}
	return c.kernel.writer.Do(ctx, aggregate.Command{Aggregate: a, Actor: c.Principal.Actor, Invocation: c.Invocation}, decide)
}
