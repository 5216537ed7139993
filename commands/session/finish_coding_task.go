package session

import (
	"context"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// FinishIn is the input of finish_coding_task. Absent include flags mean true.
type FinishIn struct {
	Project           string `json:"project"`
	SessionID         string `json:"session_id"`
	SummaryOnly       bool   `json:"summary_only,omitempty"`
	IncludeDiff       *bool  `json:"include_diff,omitempty"`
	IncludeWorkspace  *bool  `json:"include_workspace,omitempty"`
	IncludeHygiene    *bool  `json:"include_hygiene,omitempty"`
	IncludeHandoff    *bool  `json:"include_handoff,omitempty"`
	IncludeValidation *bool  `json:"include_validation_summary,omitempty"`
}

// FinishTask is the deterministic closeout from evidence; it closes nothing (STA-23).
var FinishTask = call.Spec{
	Name: "finish_coding_task", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: FinishIn{}, Run: finishTask,
}

func finishTask(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[FinishIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	if in.Project == "" {
		return call.Result{}, fault.New(fault.InvalidArguments, "name the project of the Session").WithField("project")
	}
	v, s, err := snapshot(ctx, c, session.Snapshot{IncludeWorkspace: asked(in.IncludeWorkspace),
		IncludeValidation: asked(in.IncludeValidation), IncludeCheckpoints: true})
	if err != nil {
		return call.Result{}, err
	}
	o := session.FinishOptions{SummaryOnly: in.SummaryOnly, IncludeDiff: asked(in.IncludeDiff), IncludeHygiene: asked(in.IncludeHygiene),
		IncludeHandoff: asked(in.IncludeHandoff)}
	lookForFinish(ctx, c, &o)
	return call.Result{Output: session.NewFinish(v, s, o)}, nil
}
