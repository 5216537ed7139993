package gitops

import (
	"context"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

func restorePaths(ctx context.Context, p *runner.Project, in wire.RestorePathsIn) (wire.RestorePathsOut, error) {
	paths, err := relpath.Clean("paths", in.Paths, maxRestorePaths)
	if err != nil {
		return wire.RestorePathsOut{}, err
	}
	if len(paths) == 0 {
		return wire.RestorePathsOut{}, fault.New(fault.InvalidArguments, "paths names nothing").WithField("paths")
	}
	return with(ctx, p, func(repo *git.Repo) (wire.RestorePathsOut, error) {
		restored, unchanged, err := repo.Restore(ctx, paths)
		return wire.RestorePathsOut{Restored: orEmpty(restored), Unchanged: orEmpty(unchanged), FiltersDisabled: repo.FiltersDisabled()}, err
	})
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
