package files

import (
	"context"
	"errors"
	"os"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// step ties an action to the argument it came from.
type step struct {
	action
	index int
	field string
}

// transact makes all steps or none. Its error says what is changed all the same: nothing,
// unless undoing failed too.
func (s *service) transact(ctx context.Context, steps []step) error {
	defer func() {
		for i := len(steps) - 1; i >= 0; i-- {
			steps[i].unstage()
		}
	}()
	for _, st := range steps {
		if err := st.stage(); err != nil {
			return broken(err, st, nil)
		}
	}
	if err := ctx.Err(); err != nil {
		return timedOut(ctx)
	}
	for i, st := range steps {
		s.between(i)
		if err := st.commit(); err != nil {
			return broken(err, st, undo(steps[:i]))
		}
	}
	s.between(len(steps))
	for _, st := range steps {
		st.settle()
	}
	syncDirs(steps)
	return nil
}

// undo takes back committed steps, last first, and gives the paths of those it could not.
func undo(done []step) []string {
	var left []string
	for i := len(done) - 1; i >= 0; i-- {
		if err := done[i].undo(); err != nil {
			left = append(left, done[i].paths()...)
		}
	}
	return left
}

// broken is the answer of a transaction that failed at a step; left are the paths that stay
// changed.
func broken(err error, at step, left []string) error {
	var stuck stuckError
	if errors.As(err, &stuck) {
		left = append(at.paths(), left...)
	}
	if len(left) > 0 {
		f := fault.Wrap(err, fault.TransactionFailed, "the change failed half-way and %d paths could not be put back", len(left)).
			WithReason(systemReason(err)).With("changed_paths", left).
			WithNext("read the named paths before changing them again")
		f.Recovery, f.StateChanged = fault.ReRead, true
		return f
	}
	if errors.Is(err, errMoved) {
		return conflicted([]wire.EditConflict{{Change: at.index, Path: at.paths()[0], Kind: wire.SHA256Mismatch}})
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return f.WithField(at.field)
	}
	return fault.Wrap(err, fault.TransactionFailed, "the files could not be written; all of them are as they were").
		WithReason(systemReason(err)).WithField(at.field).With("changed_paths", []string{}).
		WithNext("free space or check the rights of the folder, then repeat the call")
}

// syncDirs makes the new names durable. That it failed changes nothing about what is there.
func syncDirs(steps []step) {
	synced := map[*os.Root]bool{}
	for _, st := range steps {
		for _, d := range st.directories() {
			if synced[d] {
				continue
			}
			synced[d] = true
			if f, err := d.Open("."); err == nil {
				f.Sync()
				f.Close()
			}
		}
	}
}
