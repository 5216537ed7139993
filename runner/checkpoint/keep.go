package checkpoint

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/files"
	"webcodex/runner/wire"
)

// Service makes and restores the checkpoints of a Runner's Projects.
type Service struct {
	files files.Changer
	now   func() time.Time
}

// Register adds the checkpoint ops to r; files are changed through f. now is the wall clock, nil:
// time.Now.
func Register(r *runner.Runner, f files.Changer, now func() time.Time) *Service {
	if now == nil {
		now = time.Now
	}
	s := &Service{files: f, now: now}
	runner.Effect(r, wire.OpCreateCheckpoint, s.Create)
	runner.Read(r, wire.OpListCheckpoints, s.List)
	runner.Read(r, wire.OpReadCheckpoint, s.Read)
	runner.Effect(r, wire.OpRestoreCheckpoint, s.Restore)
	runner.Effect(r, wire.OpDeleteCheckpoint, s.Delete)
	return s
}

// detail is what a checkpoint knows of paths whose content it does not have.
type detail struct {
	Deleted []string     `json:"deleted"`
	Passed  []git.Passed `json:"passed"`
}

// with opens the Project's repository for one request.
func with[Out any](ctx context.Context, p *runner.Project, do func(*git.Repo) (Out, error)) (Out, error) {
	repo, err := git.Open(ctx, p.Root)
	if err != nil {
		var none Out
		return none, err
	}
	defer repo.Close()
	repo.Patient(gitTime)
	return do(repo)
}

// Create makes a checkpoint of the files as they are (OpCreateCheckpoint).
func (s *Service) Create(ctx context.Context, p *runner.Project, in wire.CreateCheckpointIn) (wire.CreateCheckpointOut, error) {
	if err := in.Check(); err != nil {
		return wire.CreateCheckpointOut{}, err
	}
	defer s.files.Exclusive(p)()
	return with(ctx, p, func(repo *git.Repo) (out wire.CreateCheckpointOut, err error) {
		at := git.CheckpointRef{Owner: string(p.ID), Name: in.ID}
		if had, err := find(ctx, repo, at); err == nil { // the same request again
			return created(had), nil
		} else if fault.As(err).Reason != "unknown_checkpoint" {
			return out, err
		}
		seen, err := steady(ctx, repo)
		if err != nil {
			return out, err
		}
		made, err := s.keep(ctx, repo, at, in, seen)
		return created(made), err
	})
}

func created(c kept) wire.CreateCheckpointOut {
	return wire.CreateCheckpointOut{CheckpointInfo: c.info, SkippedFiles: skipped(c.detail.Passed)}
}

func skipped(list []git.Passed) []wire.SkippedFile {
	out := []wire.SkippedFile{}
	for _, p := range list[:min(len(list), wire.MaxCheckpointFiles)] {
		out = append(out, wire.SkippedFile(p))
	}
	return out
}

// steady looks at the working tree until two looks see the same: what one saw is then how it was at
// one moment.
func steady(ctx context.Context, repo *git.Repo) (git.Survey, error) {
	seen, err := repo.Survey(ctx, limits)
	for n := 1; err == nil && n < looks; n++ {
		var again git.Survey
		if again, err = repo.Survey(ctx, limits); err == nil && again.State == seen.State {
			return again, nil
		}
		seen = again
	}
	if err != nil {
		return git.Survey{}, err
	}
	return git.Survey{}, fault.New(fault.Conflict, "files are being changed all the time; no checkpoint was made").WithNext("call again when nothing writes")
}

// keep writes a checkpoint of what was seen.
func (s *Service) keep(ctx context.Context, repo *git.Repo, at git.CheckpointRef, in wire.CreateCheckpointIn, seen git.Survey) (kept, error) {
	have := 0
	if err := repo.Checkpoints(ctx, at.Owner, func(git.Checkpoint) error { have++; return nil }); err != nil {
		return kept{}, err
	}
	if have >= maxKept {
		return kept{}, fault.New(fault.CapacityReached, "this Project has %d checkpoints, and no more are kept", have).
			WithNext("delete one that is not needed (list_workspace_checkpoints, delete_workspace_checkpoint)")
	}
	k := kept{info: wire.CheckpointInfo{ID: at.Name, CheckpointAbout: in.CheckpointAbout, CreatedAt: event.FormatTime(s.now()),
		Head: seen.Head.Commit, Branch: clip(seen.Head.Branch), State: seen.State, Untracked: in.Untracked},
		detail: detail{Deleted: []string{}, Passed: seen.Passed}}
	var content []git.Found
	for _, f := range seen.Found {
		switch {
		case f.Untracked && !in.Untracked:
			continue
		case f.Mode == "":
			k.detail.Deleted = append(k.detail.Deleted, f.Path)
		default:
			content = append(content, f)
			k.info.Kept++
			k.info.Bytes += int64(len(f.Content))
		}
	}
	k.info.Deleted, k.info.Skipped = len(k.detail.Deleted), len(k.detail.Passed)
	k.info.Complete = k.info.Skipped == 0
	about, err := json.Marshal(k.info)
	if err != nil {
		return kept{}, err
	}
	rest, err := json.Marshal(k.detail)
	if err != nil {
		return kept{}, err
	}
	return k, repo.Save(ctx, at, seen.Head.Commit, content, about, rest, s.now())
}

// kept is a checkpoint as it is read back.
type kept struct {
	git    git.Checkpoint
	info   wire.CheckpointInfo
	detail detail
}

// read takes a checkpoint's word for itself as far as it can be true: anybody may have written it.
func read(c git.Checkpoint) (kept, bool) {
	k := kept{git: c}
	if json.Unmarshal(c.About, &k.info) != nil || k.info.ID != c.Name || k.info.Head != c.Parent || k.info.Check() != nil {
		return k, false
	}
	i := &k.info
	i.Branch, i.Kept, i.Deleted, i.Skipped, i.Bytes = clip(i.Branch), max(0, i.Kept), max(0, i.Deleted), max(0, i.Skipped), max(0, i.Bytes)
	if _, err := time.Parse(time.RFC3339, i.CreatedAt); err != nil || len(i.CreatedAt) > 40 || len(i.State) != 64 || strings.Trim(i.State, "0123456789abcdef") != "" {
		return k, false
	}
	return k, true
}

// find gives one checkpoint with its detail.
func find(ctx context.Context, repo *git.Repo, at git.CheckpointRef) (kept, error) {
	c, err := repo.Checkpoint(ctx, at)
	if err != nil {
		return kept{}, err
	}
	k, ok := read(c)
	if !ok {
		return kept{}, damaged()
	}
	var id string
	err = repo.At(ctx, c.Commit, []string{"detail.json"}, func(e git.Entry) error { id = e.ID; return nil })
	if err != nil || id == "" {
		return kept{}, damaged()
	}
	err = repo.Objects(ctx, []string{id}, maxDetail, func(o git.Object) error { return json.Unmarshal(o.Content, &k.detail) })
	if err != nil || len(k.detail.Deleted) > limits.Paths {
		return kept{}, damaged()
	}
	return k, nil
}

func damaged() error {
	return fault.New(fault.GitFailed, "the checkpoint cannot be read: it is damaged, or something else wrote it").WithReason("damaged_checkpoint").
		WithNext("delete it, and use another (list_workspace_checkpoints)")
}

// List gives the newest checkpoints of a Project, newest first (OpListCheckpoints).
func (s *Service) List(ctx context.Context, p *runner.Project, in wire.ListCheckpointsIn) (wire.ListCheckpointsOut, error) {
	out, err := with(ctx, p, func(repo *git.Repo) (wire.ListCheckpointsOut, error) {
		all := []wire.CheckpointInfo{}
		err := repo.Checkpoints(ctx, string(p.ID), func(c git.Checkpoint) error {
			if k, ok := read(c); ok {
				all = append(all, k.info)
			}
			return nil
		})
		slices.SortStableFunc(all, func(a, b wire.CheckpointInfo) int {
			if c := strings.Compare(b.CreatedAt, a.CreatedAt); c != 0 {
				return c
			}
			return strings.Compare(b.ID, a.ID)
		})
		most := in.Limit
		if most <= 0 || most > wire.MaxListedCheckpoints {
			most = wire.MaxListedCheckpoints
		}
		return wire.ListCheckpointsOut{Checkpoints: all[:min(len(all), most)], Total: len(all)}, err
	})
	if f := fault.As(err); f != nil && (f.Reason == "not_a_repository" || f.Reason == "bare_repository") {
		return wire.ListCheckpointsOut{Checkpoints: []wire.CheckpointInfo{}, NoRepository: true}, nil
	}
	return out, err
}

// Delete forgets a checkpoint; its objects go with git's next clean-up (OpDeleteCheckpoint).
func (s *Service) Delete(ctx context.Context, p *runner.Project, in wire.DeleteCheckpointIn) (wire.DeleteCheckpointOut, error) {
	if err := wire.CheckCheckpoint(in.ID); err != nil {
		return wire.DeleteCheckpointOut{}, err
	}
	return with(ctx, p, func(repo *git.Repo) (wire.DeleteCheckpointOut, error) {
		at := git.CheckpointRef{Owner: string(p.ID), Name: in.ID}
		c, err := repo.Checkpoint(ctx, at)
		if err != nil {
			return wire.DeleteCheckpointOut{}, err
		}
		return wire.DeleteCheckpointOut{ID: in.ID, Deleted: true}, repo.DropCheckpoint(ctx, at, c.Commit)
	})
}

// clip bounds a name that the repository tells.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > wire.MaxCheckpointTitle {
		return string(r[:wire.MaxCheckpointTitle])
	}
	return s
}
