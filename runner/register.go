package runner

import (
	"context"
	"encoding/json"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// operation is one registered op: it decodes its input, works, and encodes its output.
type operation func(ctx context.Context, p *Project, body json.RawMessage) (json.RawMessage, error)

// Effect registers the handler of an op that changes something. It runs at most once per
// execution id, journaled before it starts and after it ends. An error becomes the fault of
// the result: say with StateChanged whether something was changed all the same. ctx ends at
// the offer's time-out or when the call is cancelled. Register before the Runner serves.
func Effect[In, Out any](r *Runner, op wire.Op, do func(ctx context.Context, p *Project, in In) (Out, error)) {
	r.register(r.effects, op, true, adapt(do))
}

// Read registers the handler of an op without effects. It may run any number of times, many
// at once; its output is at most wire.MaxMessage when encoded (output_budget_exceeded).
func Read[In, Out any](r *Runner, op wire.Op, do func(ctx context.Context, p *Project, in In) (Out, error)) {
	r.register(r.reads, op, false, adapt(do))
}

// Prepare registers what is done with a Project before it is served for the first time in
// this life. A failure is logged and keeps nobody from the Project. Register before Projects
// are added.
func Prepare(r *Runner, do func(p *Project) error) {
	r.projects.prepare = append(r.projects.prepare, func(p *Project) {
		if err := do(p); err != nil {
			r.o.Logger.Warn("a Project could not be put in order", "project", p.ID, "cause", err)
		}
	})
}

func (r *Runner) register(table map[wire.Op]operation, op wire.Op, effect bool, run operation) {
	info, known := wire.Ops[op]
	if !known || info.Effect != effect {
		panic("runner: op " + string(op) + " is not declared in wire, or as the other kind")
	}
	if _, twice := table[op]; twice {
		panic("runner: op " + string(op) + " registered twice")
	}
	table[op] = run
}

func adapt[In, Out any](do func(context.Context, *Project, In) (Out, error)) operation {
	return func(ctx context.Context, p *Project, body json.RawMessage) (json.RawMessage, error) {
		var in In
		if len(body) > 0 {
			if err := json.Unmarshal(body, &in); err != nil {
				return nil, fault.Wrap(err, fault.RunnerRefused, "the Runner could not read the request").WithReason("malformed")
			}
		}
		out, err := do(ctx, p, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}
