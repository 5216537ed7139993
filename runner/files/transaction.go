package files

import (
	"context"
	"errors"
	"os"

	"webcodex/internal/fault"
	"webcodex/runner"
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
func (s *service) transact(ctx context.Context, p *runner.Project, steps []step) error {
	if len(steps) == 0 {
		return nil
	}
	n, err := s.notes.begin(p, steps)
	if err != nil {
		return broken(err, steps[0], nil)
	}
	s.reached("noted")
	if at, err := s.carryOut(ctx, n, steps); err != nil {
		left, rerr := takeBack(steps)
		n.end(rerr)
		if f := fault.As(err); f.Kind == fault.Cancelled || f.Kind == fault.Timeout {
			return f
		}
		return broken(err, at, left)
	}
	// The change is made and stays, whatever happens to what lies beside it.
	err = settle(steps)
	if s.notes.sync {
		syncDirs(steps)
	}
	s.reached("settled")
	n.end(err)
	return nil
}

// carryOut stages and commits all steps. It gives the step that failed.
func (s *service) carryOut(ctx context.Context, n *note, steps []step) (step, error) {
	for _, st := range steps {
		if err := st.stage(); err != nil {
			return st, err
		}
		s.reached("staged one")
	}
	if err := n.staged(steps); err != nil {
		return steps[0], err
	}
	s.reached("staged")
	if ctx.Err() != nil {
		return steps[0], timedOut(ctx)
	}
	for i, st := range steps {
		s.between(i)
		if err := st.commit(); err != nil {
			return st, err
		}
		s.reached("committed one")
	}
	s.between(len(steps))
	syncDirs(steps)
	if err := n.committed(); err != nil {
		return steps[0], err
	}
	s.reached("committed")
	return step{}, nil
}

// end drops the note, unless something of the transaction is still there.
func (n *note) end(left error) {
	if left != nil {
		n.keep()
		return
	}
	_ = n.drop()
}

// settle removes what a finished change left beside its files.
func settle(steps []step) error {
	var failed error
	for _, st := range steps {
		failed = errors.Join(failed, st.settle())
	}
	return failed
}

// takeBack undoes what was committed, last first, and removes what was staged. It gives the
// paths that stay changed. Where the system did not let it, the old content is kept beside
// the file, and the error says that there is something left to do.
func takeBack(steps []step) (left []string, failed error) {
	stuck := make([]bool, len(steps))
	for i := len(steps) - 1; i >= 0; i-- {
		err := steps[i].undo()
		if err != nil {
			left = append(left, steps[i].paths()...)
		}
		if stuck[i] = err != nil && !errors.Is(err, errMoved); stuck[i] {
			failed = errors.Join(failed, err)
		}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if !stuck[i] {
			failed = errors.Join(failed, steps[i].unstage())
		}
	}
	return left, failed
}

// broken is the answer of a transaction that failed at a step; left are the paths that stay
// changed.
func broken(err error, at step, left []string) error {
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
