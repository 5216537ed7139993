// Package gitops serves the git ops of the wire: status, diffs, history, the index, and
// putting files back. It runs git only through internal/git, shows names that are not UTF-8
// escaped, and bounds every answer; what is over a bound is counted or paged, never dropped
// silently.
package gitops

import (
	"context"

	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// Register adds the git ops to r. Call it before r serves.
func Register(r *runner.Runner) {
	runner.Read(r, wire.OpObserveWorkspace, observeWorkspace)
	runner.Read(r, wire.OpTrackedFiles, trackedFiles)
	runner.Read(r, wire.OpGitStatus, gitStatus)
	runner.Read(r, wire.OpGitDiff, gitDiff)
	runner.Read(r, wire.OpGitDiffHunks, gitDiffHunks)
	runner.Read(r, wire.OpGitLog, gitLog)
	runner.Read(r, wire.OpWorkspaceChanges, workspaceChanges)
	runner.Read(r, wire.OpGitReview, gitReview)
	runner.Read(r, wire.OpHygiene, hygiene)
	runner.Effect(r, wire.OpRestorePaths, restorePaths)
}

// with opens the Project's repository for one request.
func with[Out any](ctx context.Context, p *runner.Project, do func(*git.Repo) (Out, error)) (Out, error) {
	repo, err := git.Open(ctx, p.Root)
	if err != nil {
		var none Out
		return none, err
	}
	defer repo.Close()
	return do(repo)
}
