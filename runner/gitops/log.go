package gitops

import (
	"context"

	"webcodex/eventlog/event"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

const defaultLogLimit = 20

func gitLog(ctx context.Context, p *runner.Project, in wire.GitLogIn) (wire.GitLogOut, error) {
	limit, from := clamp(in.Limit, defaultLogLimit, maxLogLimit), min(max(0, in.Skip), maxLogSkip)
	return with(ctx, p, func(repo *git.Repo) (wire.GitLogOut, error) {
		out := wire.GitLogOut{Commits: []wire.GitCommit{}}
		err := repo.Log(ctx, from, limit+1, func(c git.Commit) error {
			if len(out.Commits) == limit {
				out.Truncated = true
				return nil
			}
			if len(c.Parents) > maxParents {
				c.Parents = c.Parents[:maxParents]
			}
			out.Commits = append(out.Commits, wire.GitCommit{Commit: c.ID, Parents: c.Parents, Author: clip(c.Author, maxAuthorChars),
				AuthoredAt: event.FormatTime(c.AuthoredAt), CommittedAt: event.FormatTime(c.CommittedAt),
				Subject: clip(c.Subject, maxSubjectChars)})
			return nil
		})
		out.Count = len(out.Commits)
		if next := from + limit; out.Truncated && next <= maxLogSkip {
			out.NextSkip = &next
		}
		return out, err
	})
}
