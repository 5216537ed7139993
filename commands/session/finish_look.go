package session

import (
	"context"
	"sync"

	"webcodex/commands/call"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// lookForFinish asks the Runner for what a closeout adds to the working tree's status, both at once.
// A Runner that cannot tell makes a section unavailable, never the call fail. The verdict alone
// needs no diff.
func lookForFinish(ctx context.Context, c *call.Call, o *session.FinishOptions) {
	if c.Target == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	var both sync.WaitGroup
	if o.IncludeDiff && !o.SummaryOnly && offers(c, wire.OpWorkspaceChanges) {
		both.Go(func() {
			if out, err := call.Ask[wire.WorkspaceChangesOut](ctx, c, wire.OpWorkspaceChanges, wire.WorkspaceChangesIn{}); err == nil {
				o.Diff = diffSummary(out)
			}
		})
	}
	if o.IncludeHygiene && offers(c, wire.OpHygiene) {
		both.Go(func() {
			in := wire.HygieneIn{MaxFindings: session.MaxCloseoutFindings}
			if out, err := call.Ask[wire.HygieneOut](ctx, c, wire.OpHygiene, in); err == nil {
				o.Hygiene = hygieneSummary(out)
			}
		})
	}
	both.Wait()
}

func diffSummary(w wire.WorkspaceChangesOut) *session.DiffSummary {
	d := &session.DiffSummary{Files: max(w.Counts.Total, 0), Untracked: max(w.Counts.Untracked, 0), Additions: max(w.DiffStat.Additions, 0),
		Deletions: max(w.DiffStat.Deletions, 0)}
	d.Changed.Total = max(w.Total, len(w.Files))
	for _, f := range w.Files[:min(session.MaxCloseoutFiles, len(w.Files))] {
		d.Changed.Items = append(d.Changed.Items, session.DiffedFile{Path: name(f.Path), Additions: f.Additions, Deletions: f.Deletions, Untracked: f.Untracked})
	}
	return d
}

func hygieneSummary(w wire.HygieneOut) *session.HygieneSummary {
	h := &session.HygieneSummary{Verdict: wire.HygieneClean, Problems: max(w.Problems, 0), Warnings: max(w.Warned, 0), Complete: w.Complete, Counts: map[string]int{}}
	switch {
	case h.Problems > 0:
		h.Verdict = wire.HygieneProblems
	case h.Warnings > 0:
		h.Verdict = wire.HygieneAttention
	}
	h.Clean = h.Verdict == wire.HygieneClean
	for kind, n := range w.Counts {
		if len(h.Counts) < maxHygieneKinds {
			h.Counts[name(kind)] = n
		}
	}
	h.Findings.Total = max(h.Problems+h.Warnings, len(w.Findings))
	for _, f := range w.Findings[:min(session.MaxCloseoutFindings, len(w.Findings))] {
		h.Findings.Items = append(h.Findings.Items, session.HygieneFinding{Kind: name(f.Kind), Path: name(f.Path), Line: max(f.Line, 0)})
	}
	return h
}
