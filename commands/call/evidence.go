package call

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// reconcileTimeout bounds how long a read waits for the journals of Runners.
const reconcileTimeout = 2 * time.Second

// classified holds the end of a call against what its caller declared (EXE-29). A Job has no
// end yet (EXE-35).
func (c *Call) classified(e event.ToolCallFinished) event.ToolCallFinished {
	if c.req.Spec.Expects {
		e.Expectation = evidence.Classify(c.Evidence(), evidence.Ended(e))
	}
	return e
}

// Evidence is what of the call's arguments is stored, within its bounds.
func (c *Call) Evidence() event.Input {
	if c.req.Spec.Evidence == nil {
		return event.Input{}
	}
	return BoundInput(c.req.Spec.Evidence(c.Args))
}

// Tool is the name of the tool that was called.
func (c *Call) Tool() string { return c.req.Spec.Name }

// runs tells ops that run a process from the others.
func runs(op wire.Op) bool {
	return op == wire.OpProcess || op == wire.OpScript || op == wire.OpShell || op == wire.OpSSHShell || op == wire.OpDetached
}

// judged adds what an end proves of what the run covers, where the tool that began it has not:
// it is gone, or the end was found in a Runner's journal.
func (f Facts) judged(s *event.ValidationScope, minTests int) Facts {
	if s == nil || f.Validation != nil {
		return f
	}
	v, kind := evidence.Validate(*s, minTests, f.process, false)
	f.Validation = v
	if kind != "" {
		f.FailureKind = kind
	}
	return f
}

// jobEnd is the terminal marker of a Job. Where the start that declared the expectation has
// left the tail, success is required (EXE-36).
func (k *Kernel) jobEnd(id event.SessionID, job session.OpenJob, f Facts) (event.ExecutionFinished, error) {
	f = f.judged(job.Validates, job.Input.MinTests)
	e := event.ExecutionFinished{Execution: job.Execution.ID, Call: job.Call, Tool: job.Tool, ExitCode: f.ExitCode,
		FailureKind: f.FailureKind, Effect: f.Effect, Expectation: event.ExpectationNone, Validation: f.Validation, FinishedAt: f.FinishedAt}
	if !runs(wire.Op(job.Execution.Op)) {
		return e, nil
	}
	declared := job.Input
	if declared.Expectation != "" || len(declared.AcceptedExitCodes) > 0 {
		v, err := k.cfg.Sessions.Load(id)
		if err != nil {
			return e, err
		}
		if !v.Tail.Retains(job.Call) {
			declared = event.Input{}
		}
	}
	e.Expectation = evidence.Classify(declared, evidence.EndedJob(e))
	return e, nil
}

// CommandDigest stands for a command in an identity: keyed, so that what is stored tells
// nothing about its text, and the same for the same input on the same server.
func (c *Call) CommandDigest(op wire.Op, in any) (string, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	return c.kernel.fleet.Digest(wire.Offer{Op: op, Body: body}), nil
}

// Reconcile records the ends of a Session's Jobs that their Runners have in their journals and
// that have not come yet, before its evidence is read (VAL-04): each once, whoever else finds
// it. It runs nothing (VAL-11). A Runner that does not answer leaves its Jobs open.
func (c *Call) Reconcile(ctx context.Context, id event.SessionID) error {
	k := c.kernel
	core, err := k.cfg.Sessions.Target(id)
	if err != nil || len(core.Jobs) == 0 {
		return err
	}
	// One at a time for a Session: what one has looked at is recorded before another looks
	// (VAL-09).
	one := &k.reconciling[int(id[len(id)-1])%len(k.reconciling)]
	one.Lock()
	defer one.Unlock()
	if core, err = k.cfg.Sessions.Target(id); err != nil {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	jobs := slices.SortedFunc(maps.Values(core.Jobs), func(a, b session.OpenJob) int {
		return strings.Compare(string(a.Execution.ID), string(b.Execution.ID))
	})
	for _, job := range jobs[:min(len(jobs), session.MaxEnded)] {
		q, err := k.fleet.Query(ask, job.Execution.Client, job.Execution.ID)
		if err != nil || q.Result == nil || q.State != wire.JTerminal && q.State != wire.JSettled {
			continue
		}
		if err := k.recordEnd(ctx, id, c.Principal.Actor, c.Invocation, job.Execution.ID, provenFacts(*q.Result), q.Result.DurationMS); err != nil {
			return err
		}
	}
	return nil
}
