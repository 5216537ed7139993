package session

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// Head is the Session part that several results show.
type Head struct {
	Title     string                 `json:"title"`
	Mode      event.Mode             `json:"mode"`
	Guards    event.Guards           `json:"guards"`
	Lifecycle session.Lifecycle      `json:"lifecycle"`
	Context   event.ExecutionContext `json:"execution_context"`
	CreatedAt string                 `json:"created_at"`
	UpdatedAt string                 `json:"updated_at"`
}

// HeadOf shows a core.
func HeadOf(c session.Core) Head {
	return Head{Title: c.Title, Mode: c.Mode, Guards: c.Guards, Lifecycle: c.Lifecycle, Context: c.Context,
		CreatedAt: event.FormatTime(c.CreatedAt), UpdatedAt: event.FormatTime(c.UpdatedAt)}
}

// bootstrap is what a start or resume observes of the Project.
type bootstrap struct {
	workspace  wire.ObserveWorkspaceOut
	navigation SemanticNavigation
}

// observeStart asks for the required observations and, at the same time, for semantic
// navigation, which is taken where it is there by then and never waited for (STA-12).
func observeStart(ctx context.Context, c *call.Call) bootstrap {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := make(chan SemanticNavigation, 1)
	if c.Target != nil && offers(c, wire.OpObserveNavigation) {
		go func() { told <- observeNavigation(ctx, c) }()
	}
	in := wire.ObserveWorkspaceIn{Instructions: true, Text: c.Wants(call.MaterialInstructions) && c.HasScope(call.ScopeProjectRead)}
	b := bootstrap{workspace: observe(ctx, c, in), navigation: SemanticNavigation{Status: NavigationNotObserved}}
	select {
	case b.navigation = <-told:
	default:
	}
	return b
}

// offers reports whether the Runner of the call's Project said that it serves the op.
func offers(c *call.Call, op wire.Op) bool {
	return slices.ContainsFunc(c.Fleet().Runners(), func(r call.RunnerInfo) bool {
		return r.Client == c.Target.Ref.Client && slices.Contains(r.Capabilities, string(op))
	})
}

func observeNavigation(ctx context.Context, c *call.Call) SemanticNavigation {
	out, err := call.Ask[wire.ObserveNavigationOut](ctx, c, wire.OpObserveNavigation, struct{}{})
	if err != nil {
		return SemanticNavigation{Status: NavigationNotObserved}
	}
	n := SemanticNavigation{Status: NavigationUnavailable, Available: &out.Available}
	if out.Available {
		n.Status = NavigationAvailable
	}
	return n
}

// observe asks the Runner about the working tree; a Runner that cannot tell makes the
// observation unavailable, never the call fail.
func observe(ctx context.Context, c *call.Call, in wire.ObserveWorkspaceIn) wire.ObserveWorkspaceOut {
	unavailable := wire.ObserveWorkspaceOut{Status: wire.WorkspaceUnavailable, Reason: "runner_unavailable", Conflicts: []string{}}
	if c.Target == nil {
		return unavailable
	}
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	out, err := call.Ask[wire.ObserveWorkspaceOut](ctx, c, wire.OpObserveWorkspace, in)
	if err != nil {
		return unavailable
	}
	return bounded(out)
}

// bounded takes out of an answer what no Runner of ours says: it may be anybody's.
func bounded(w wire.ObserveWorkspaceOut) wire.ObserveWorkspaceOut {
	switch w.Status {
	case wire.WorkspaceClean, wire.WorkspaceDirty, wire.WorkspaceBlocked, wire.WorkspaceUnavailable:
	default:
		w.Status, w.Reason = wire.WorkspaceUnavailable, "runner_answer_invalid"
	}
	w.Reason, w.Branch, w.Head, w.TreeReason = name(w.Reason), name(w.Branch), name(w.Head), name(w.TreeReason)
	if len(w.Tree) != 2*sha256.Size || strings.Trim(w.Tree, "0123456789abcdef") != "" {
		w.Tree = ""
	}
	w.ConflictCount, w.ChangedFiles = max(w.ConflictCount, len(w.Conflicts)), max(w.ChangedFiles, 0)
	kept := []string{}
	for room, i := maxConflictBytes, 0; i < len(w.Conflicts); i++ {
		path := strings.ToValidUTF8(w.Conflicts[i], "\uFFFD")
		if room -= jsonBytes(path) + 1; room < 0 {
			break
		}
		kept = append(kept, path)
	}
	w.Conflicts = kept
	return w
}

// name is a Runner's word as an answer may show it.
func name(s string) string {
	if r := []rune(s); len(r) > maxRunnerChars {
		return string(r[:maxRunnerChars])
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// jsonBytes is the longest form that any edge sends a text in.
func jsonBytes(s string) int {
	b, err := json.Marshal(s)
	if err != nil {
		return len(s)
	}
	return len(b)
}
