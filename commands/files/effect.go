package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// request is the input of an op that tells what is wrong with itself.
type request interface{ Check() error }

// change makes one effect and decodes its answer. A request that is wrong by itself is refused
// before a start is recorded. What a half-way failure left changed is recorded although the
// call failed.
func change[Out any](ctx context.Context, c *call.Call, op wire.Op, in request, changed func(Out) []string) (Out, call.Facts, error) {
	var out Out
	if err := in.Check(); err != nil {
		return out, call.Facts{}, err
	}
	facts := func(r wire.Result) call.Facts {
		f := call.FactsOf(r)
		var o Out
		if len(r.Body) > 0 && json.Unmarshal(r.Body, &o) == nil {
			f.Changed = changed(o)
		}
		if r.Fault != nil {
			f.Changed = leftChanged(r.Fault)
		}
		f.Effect.StateChanged = f.Effect.StateChanged || len(f.Changed) > 0
		return f
	}
	o, err := c.Effect(ctx, op, in, call.EffectOptions{Timeout: effectTimeout, Facts: facts})
	if err != nil {
		return out, call.Facts{Changed: leftChanged(fault.As(err))}, err
	}
	if err := json.Unmarshal(o.Result.Body, &out); err != nil {
		return out, facts(*o.Result), fault.Wrap(err, fault.Internal, "the Runner's answer could not be read")
	}
	return out, facts(*o.Result), nil
}

// leftChanged are the paths that a failed transaction names as changed.
func leftChanged(f *fault.Error) []string {
	switch list := f.Details["changed_paths"].(type) {
	case []string:
		return list
	case []any:
		var out []string
		for _, v := range list {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
