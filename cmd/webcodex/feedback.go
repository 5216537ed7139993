package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"webcodex/projections/session"
)

func feedbackCommand() command {
	return command{
		name: "feedback", args: "SESSION", min: 1, max: 1, short: "show what the last attempt did, and what it left open",
		long: `Prints what happened in a Session since its newest instruction: calls, changed files, failures, how validation
stands. It is evidence and no verdict. Without a running server the working tree is not looked at.`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				id, err := sessionArg(args[0])
				if err != nil {
					return err
				}
				raw, err := readDetailed(ctx, dir, id, true)
				if err != nil {
					return err
				}
				var out struct {
					Feedback json.RawMessage `json:"continuation_feedback"`
				}
				if err := json.Unmarshal(raw, &out); err != nil {
					return err
				}
				if *asJSON {
					return printRaw(s.out, out.Feedback)
				}
				var f session.Feedback
				if err := json.Unmarshal(out.Feedback, &f); err != nil {
					return err
				}
				return printFeedback(s.out, f)
			}
		},
	}
}

// printFeedback shows a feedback to a person.
func printFeedback(w io.Writer, f session.Feedback) error {
	p := &page{w: w}
	a := f.Attempt
	if a == nil {
		p.linef("There is no attempt yet (%s).", plain(f.ReasonCode))
		return p.err
	}
	switch {
	case !a.Boundary.Complete:
		p.linef("The newest events: the instruction that they belong to is retained no more")
	case a.Instruction == nil:
		p.linef("All there is since the Session began, without an instruction")
	default:
		p.linef("The attempt since the newest instruction")
	}
	p.excerpt("asked", a.Instruction)
	p.field("calls", fmt.Sprintf("%d, %d failed; %d read, %d wrote, %d ran", a.Activity.ToolCalls, a.Activity.Failed,
		a.Activity.ReadLike, a.Activity.WriteLike, a.Activity.ShellLike))
	p.list("changed", a.Changes.Items, a.Changes.Total)
	p.list("read", a.Exploration.Paths.Items, a.Exploration.Paths.Total)
	p.field("validation", validationLine(session.BriefValidation{Status: a.Validation.Status, Latest: a.Validation.Latest}))
	if n := a.Validation.Gaps; n > 0 {
		p.field("", several(n, "run", "runs")+" without the evidence that was asked for")
	}
	p.failures(a.Failures)
	p.field("jobs", jobsLine(a.Jobs))
	for i, x := range f.Suggested {
		name := ""
		if i == 0 {
			name = "next"
		}
		p.field(name, x.Tool+": "+x.Why)
	}
	return p.err
}
