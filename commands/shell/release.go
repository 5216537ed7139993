package shell

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// OnClosing is told of Sessions that were closed and has their shells ended, before the close is
// answered (SHL-19, SHL-20). A Runner that cannot be reached then ends them itself, once it notices
// that; one that does not answer is asked again.
func OnClosing(f call.Fleet, logger *slog.Logger) func(context.Context, session.Core) {
	return func(ctx context.Context, core session.Core) {
		if core.Project.Zero() {
			return
		}
		t, err := f.Target(core.Project)
		if err != nil || !serves(f, t, wire.OpShellRelease) {
			return
		}
		if release(ctx, f, t, core.ID) == nil {
			return
		}
		go func() {
			var err error
			for range releaseTries {
				time.Sleep(releaseTime)
				if t, err = f.Target(core.Project); err != nil {
					return
				}
				if err = release(context.Background(), f, t, core.ID); err == nil {
					return
				}
			}
			logger.Warn("the Runner could not be told of a closed Session", "session", core.ID, "cause", err)
		}()
	}
}

func release(ctx context.Context, f call.Fleet, t call.Target, id event.SessionID) error {
	body, err := json.Marshal(wire.ShellReleaseIn{Session: id})
	if err == nil {
		_, err = f.Ask(context.WithoutCancel(ctx), t, wire.OpShellRelease, body, releaseTime)
	}
	return err
}

// serves reports whether a Project's Runner said that it can do the op.
func serves(f call.Fleet, t call.Target, op wire.Op) bool {
	return slices.ContainsFunc(f.Runners(), func(r call.RunnerInfo) bool {
		return r.Client == t.Ref.Client && slices.Contains(r.Capabilities, string(op))
	})
}
