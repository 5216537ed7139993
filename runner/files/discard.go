package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// discardPlan is a plan that takes untracked files away.
type discardPlan struct {
	plan
	in       wire.DiscardIn
	out      wire.DiscardOut
	expanded bool // files that were not named one by one
	within   []string
	// last is the tree of the file before: files of one directory share it, and what it holds open.
	last    *tree
	lastDir string
}

// discardUntracked answers discard_untracked. git says what is untracked; the files go by the
// transaction of the other changes, all or none.
func (s *service) discardUntracked(ctx context.Context, p *runner.Project, in wire.DiscardIn) (wire.DiscardOut, error) {
	defer s.exclusive(p.Root, p.Fingerprint)()
	pl := &discardPlan{plan: plan{p: p}, in: in}
	defer pl.close()
	if err := pl.make(ctx); err != nil {
		return wire.DiscardOut{}, err
	}
	if pl.expanded && in.Digest == "" {
		return wire.DiscardOut{}, fault.New(fault.InvalidArguments, "files that are not named one by one are discarded with the digest of a preview").
			WithField("expected_digest").WithReason("preview_needed").With("count", pl.out.Count).
			WithNext("call with dry_run, look at the list, and pass its digest")
	}
	if in.Digest != "" && !strings.EqualFold(in.Digest, pl.out.Digest) {
		f := fault.New(fault.EditConflict, "the untracked files are others than those of the preview; nothing was changed").
			WithField("expected_digest").WithReason("digest_mismatch").WithNext("call with dry_run again and look at the list")
		return wire.DiscardOut{}, f
	}
	if err := s.transact(ctx, p, pl.steps); err != nil {
		return wire.DiscardOut{}, err
	}
	pl.out.Discarded = pl.changedPaths()
	pl.sweep()
	return pl.out, nil
}

// previewDiscard lists what discardUntracked would take away.
func (s *service) previewDiscard(ctx context.Context, p *runner.Project, in wire.DiscardIn) (wire.DiscardOut, error) {
	pl := &discardPlan{plan: plan{p: p}, in: in}
	defer pl.close()
	err := pl.make(ctx)
	return pl.out, err
}

// make finds the files and plans their removal; nothing is changed.
func (pl *discardPlan) make(ctx context.Context) error {
	pl.out = wire.DiscardOut{Files: []wire.DiscardFile{}, Discarded: []string{}, Directories: []string{}}
	if err := pl.in.Check(); err != nil {
		return err
	}
	repo, err := git.Open(ctx, pl.p.Root)
	if err != nil {
		return err
	}
	defer repo.Close()
	if len(pl.in.Paths) == 0 {
		pl.expanded, pl.within = true, []string{""}
		if err := pl.take(ctx, repo, nil, 0, "paths"); err != nil {
			return err
		}
	}
	for i, p := range pl.in.Paths {
		if err := pl.path(ctx, repo, i, p); err != nil {
			return err
		}
	}
	slices.SortFunc(pl.out.Files, func(a, b wire.DiscardFile) int { return cmp.Compare(a.Path, b.Path) })
	pl.out.Count = len(pl.out.Files)
	pl.digest()
	return nil
}

// path takes one named path: a file, or all untracked files of a directory.
func (pl *discardPlan) path(ctx context.Context, repo *git.Repo, i int, p string) error {
	field := fmt.Sprintf("paths[%d]", i)
	parts, err := relpath.SplitFile(p)
	if err != nil {
		return at(err, field)
	}
	name := strings.TrimSuffix(strings.Join(parts, "/"), "/.")
	where, err := pl.tree().find(fields(name), finding{})
	if err != nil {
		return at(err, field)
	}
	if where.path != name {
		// git would not follow a link on the way either.
		return at(badPath(reasonSymlink, nil), field)
	}
	if where.info.IsDir() {
		pl.expanded = true
		pl.within = append(pl.within, name)
	}
	before := len(pl.steps)
	if err := pl.take(ctx, repo, []string{name}, i, field); err != nil || len(pl.steps) > before {
		return err
	}
	return pl.none(ctx, repo, name, field)
}

// none says why a path stands for no untracked file.
func (pl *discardPlan) none(ctx context.Context, repo *git.Repo, name, field string) error {
	tracked := 0
	if err := repo.Tracked(ctx, []string{name}, func(git.Tracked) error { tracked++; return nil }); err != nil {
		return err
	}
	refuse := func(reason, text, next string) error {
		return fault.New(fault.InvalidPath, "%s", text).WithField(field).WithReason(reason).WithNext("%s", next)
	}
	if tracked > 0 {
		return refuse("tracked", "the path holds tracked files and no untracked one; nothing of it is discarded", "use restore_git_paths for tracked files")
	}
	if pl.in.IncludeIgnored {
		return refuse("nothing_untracked", "the path holds no file", "look at get_git_status")
	}
	return refuse("ignored", "the path holds no untracked file but such as a rule ignores", "pass include_ignored to discard ignored files")
}

// take plans the untracked files of paths.
func (pl *discardPlan) take(ctx context.Context, repo *git.Repo, paths []string, i int, field string) error {
	return repo.Untracked(ctx, paths, pl.in.IncludeIgnored, func(p string) error {
		switch {
		case len(pl.steps) == wire.MaxDiscardFiles:
			return fault.New(fault.InvalidArguments, "more than %d untracked files would be discarded at once", wire.MaxDiscardFiles).
				WithField(field).WithReason("too_many").WithNext("name a directory or some of the files")
		case strings.HasSuffix(p, "/"):
			return fault.New(fault.InvalidPath, "%q is a repository of its own; its files are not looked into", shown(strings.TrimSuffix(p, "/"))).
				WithField(field).WithReason("nested_repository").WithNext("name the other files or directories, without it")
		case !utf8.ValidString(p):
			return fault.New(fault.InvalidPath, "the name of the untracked file %q is not valid UTF-8; nothing was changed", shown(p)).
				WithField(field).WithReason(reasonNotUTF8).WithNext("name the other files or directories, without it; it can be removed with run_process")
		}
		return at(pl.file(p, i, field), field)
	})
}

func (pl *discardPlan) file(p string, i int, field string) error {
	parts, err := relpath.SplitFile(p)
	if err != nil {
		return err
	}
	if pl.last == nil || pl.lastDir != parent(p) {
		pl.last, pl.lastDir = pl.tree(), parent(p)
	}
	where, err := pl.last.find(parts, finding{})
	switch {
	case err != nil:
		return err
	case where.path != p:
		return badPath(reasonChanged, nil)
	}
	m := where.info.Mode()
	if !m.IsRegular() && m&fs.ModeSymlink == 0 {
		return badPath(reasonNotRegular, nil)
	}
	pl.out.Files = append(pl.out.Files, wire.DiscardFile{Path: p, Bytes: where.info.Size(), Link: !m.IsRegular()})
	pl.out.Bytes += where.info.Size()
	pl.steps = append(pl.steps, step{&remove{at: where}, i, field})
	return nil
}

// digest is of the planned files as they were seen: name, size and time of each.
func (pl *discardPlan) digest() {
	var seen []string
	for _, st := range pl.steps {
		where := st.action.(*remove).at
		id := identityOf(where.info)
		seen = append(seen, fmt.Sprintf("%s\x00%d\x00%d\x00%d\x00", where.path, id.Inode, id.Size, id.Changed))
	}
	slices.Sort(seen)
	sum := sha256.Sum256([]byte("webcodex.discard.v1\x00" + strings.Join(seen, "")))
	pl.out.Digest = hex.EncodeToString(sum[:])
}

// sweep removes directories that became empty, within those that were named. It is no harm where
// one cannot be removed: nothing is in it.
func (pl *discardPlan) sweep() {
	dirs := map[string]bool{}
	for _, f := range pl.out.Files {
		for _, top := range pl.within {
			for d := parent(f.Path); d != "" && (top == "" || d == top || strings.HasPrefix(d, top+"/")); d = parent(d) {
				dirs[d] = true
			}
		}
	}
	all := make([]string, 0, len(dirs))
	for d := range dirs {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	for _, d := range all {
		parts := fields(d)
		in, path, err := pl.tree().directory(parts[:len(parts)-1])
		if err != nil || path != parent(d) {
			continue
		}
		if f, err := in.Open("."); err == nil {
			if unix.Unlinkat(int(f.Fd()), parts[len(parts)-1], unix.AT_REMOVEDIR) == nil {
				pl.out.Directories = append(pl.out.Directories, d)
			}
			f.Close()
		}
	}
}

func parent(p string) string {
	i := strings.LastIndexByte(p, '/')
	return p[:max(i, 0)]
}
