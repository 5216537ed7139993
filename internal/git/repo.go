package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"webcodex/internal/fault"
)

// Repo is a repository whose working tree is exactly an opened root. It is good for one
// request: what it found out about filters and place is not looked at again.
type Repo struct {
	program string
	root    *os.Root
	dir     *os.File // the root, pinned
	gitDir  string   // absolute, resolved
	// filters are the drivers switched off, sorted.
	filters []string
	env     []string
	// limit ends a child that has not finished.
	limit time.Duration
}

// Open checks that root is the top of a working tree whose git directory lies inside it, or
// is a registered worktree of a repository elsewhere, and that git itself accepts its owner.
// Errors are fault git_unavailable with reason_code git_missing, git_too_old,
// not_a_repository, bare_repository, git_dir_outside_project, dubious_ownership or
// unsupported_repository. Close releases it.
func Open(ctx context.Context, root *os.Root) (*Repo, error) {
	program, err := binary()
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, unavailable(err, "not_a_repository", "the Project's folder could not be opened")
	}
	r := &Repo{program: program, root: root, dir: dir, limit: Timeout}
	if err := r.open(ctx); err != nil {
		dir.Close()
		return nil, err
	}
	return r, nil
}

// Close releases the root.
func (r *Repo) Close() error { return r.dir.Close() }

// Patient lets git take so long for what is asked from now on: files of a whole tree are written.
func (r *Repo) Patient(limit time.Duration) { r.limit = limit }

// FiltersDisabled tells that content filters are configured and were switched off: files
// under one may show as changed.
func (r *Repo) FiltersDisabled() bool { return len(r.filters) > 0 }

func unavailable(cause error, reason, message string) *fault.Error {
	return fault.Wrap(cause, fault.GitUnavailable, "%s", message).WithReason(reason)
}

func (r *Repo) open(ctx context.Context) error {
	top, err := realPath(r.dir)
	if err != nil {
		return unavailable(err, "not_a_repository", "the Project's folder could not be opened")
	}
	if r.gitDir, err = findGitDir(r.root, top); err != nil {
		return err
	}
	// Both only read; what git thinks of the owner is told first.
	filters := make(chan error, 1)
	go func() { filters <- r.findFilters(ctx) }()
	judged := r.askGit(ctx, top)
	if err := <-filters; judged == nil && err != nil {
		return err
	}
	if judged != nil {
		return judged
	}
	r.env = filterEnv(r.filters)
	return nil
}

// findGitDir resolves where the repository of top lies and refuses what lies outside.
func findGitDir(root *os.Root, top string) (string, error) {
	info, err := root.Lstat(".git")
	if errors.Is(err, os.ErrNotExist) {
		if isBare(root) {
			return "", unavailable(nil, "bare_repository", "the Project is a bare repository: it has no working tree")
		}
		return "", unavailable(nil, "not_a_repository", "the Project's folder is not the top of a git working tree")
	}
	if err != nil {
		return "", unavailable(err, "not_a_repository", "the Project's repository could not be read")
	}
	place := filepath.Join(top, ".git")
	if info.Mode().IsRegular() {
		if place, err = pointer(place, top, "gitdir:"); err != nil {
			return "", err
		}
	}
	gitDir, err := filepath.EvalSymlinks(place)
	if err != nil {
		return "", unavailable(err, "not_a_repository", "the Project's git directory does not exist")
	}
	common := gitDir
	if _, err := os.Lstat(filepath.Join(gitDir, "commondir")); err == nil {
		if common, err = pointer(filepath.Join(gitDir, "commondir"), gitDir, ""); err != nil {
			return "", err
		}
		if common, err = filepath.EvalSymlinks(common); err != nil {
			return "", unavailable(err, "not_a_repository", "the Project's git directory does not exist")
		}
	}
	if within(top, gitDir) && within(top, common) || registered(top, gitDir, common) {
		return gitDir, nil
	}
	return "", unavailable(nil, "git_dir_outside_project",
		"the Project's git directory lies outside the Project and is not a registered worktree of a repository")
}

// registered reports whether gitDir is a worktree entry of common that points back at top, so
// that whoever owns the repository made it, not the content of the working tree.
func registered(top, gitDir, common string) bool {
	if filepath.Dir(gitDir) != filepath.Join(common, "worktrees") {
		return false
	}
	back, err := pointer(filepath.Join(gitDir, "gitdir"), gitDir, "")
	if err != nil {
		return false
	}
	a, err1 := os.Lstat(back)
	b, err2 := os.Lstat(filepath.Join(top, ".git"))
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// pointer reads a file that names a path, relative to base.
func pointer(file, base, prefix string) (string, error) {
	bad := func(err error) (string, error) {
		return "", unavailable(err, "not_a_repository", "the Project's git directory could not be read")
	}
	f, err := os.OpenFile(file, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return bad(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return bad(err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPointerFile))
	if err != nil {
		return bad(err)
	}
	text, ok := strings.CutPrefix(string(data), prefix)
	text = strings.TrimRight(strings.TrimLeft(text, " "), "\r\n")
	if !ok || text == "" || strings.ContainsRune(text, 0) {
		return bad(nil)
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(base, text)
	}
	return text, nil
}

func within(top, p string) bool {
	return p == top || strings.HasPrefix(p, strings.TrimSuffix(top, "/")+"/")
}

func isBare(root *os.Root) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := root.Lstat(name); err != nil {
			return false
		}
	}
	return true
}

// askGit lets git judge the repository as it would for its owner: with a named git directory
// it would skip the ownership check, so this one child discovers it, from the root only.
func (r *Repo) askGit(ctx context.Context, top string) error {
	env := childEnv([]string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(top)})
	out, err := r.output(ctx, env, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return r.judge(err)
	}
	found, err := filepath.EvalSymlinks(strings.TrimRight(string(out), "\n"))
	if err != nil || found != r.gitDir {
		return unavailable(err, "git_dir_outside_project", "git finds another repository than the Project's own")
	}
	return nil
}

func (r *Repo) judge(err error) error {
	var e *exitError
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case strings.Contains(e.stderr, "dubious ownership") || strings.Contains(e.stderr, "unsafe repository"):
		return unavailable(err, "dubious_ownership",
			"git refuses this repository because another user owns it").
			WithNext("Ask the owner to change the folder's owner, or to add it to git's safe.directory on the Runner's machine.")
	case strings.Contains(e.stderr, "not a git repository"):
		return unavailable(err, "not_a_repository", "the Project's folder is not a git repository git can read")
	default:
		return unavailable(err, "unsupported_repository", "git cannot read this repository's format or configuration")
	}
}

// findFilters lists the filter drivers of the effective configuration: system, user,
// repository, worktree and everything they include.
func (r *Repo) findFilters(ctx context.Context) error {
	seen := map[string]bool{}
	err := r.stream(ctx, childEnv(nil), records(func(rec []byte) error {
		name := string(rec)
		name = name[len("filter."):]
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return nil
		}
		if seen[name[:i]] = true; len(seen) > maxFilters {
			return unavailable(nil, "unsupported_repository", "the repository's configuration has too many content filters")
		}
		return nil
	}), r.place("config", "--includes", "--name-only", "-z", "--get-regexp", `^filter\.`)...)
	if err != nil && exitCode(err) != 1 { // 1: none
		return r.failed(err)
	}
	for name := range seen {
		r.filters = append(r.filters, name)
	}
	sort.Strings(r.filters)
	return nil
}

// filterEnv switches the filters off by configuration from the environment: names may hold
// bytes that -c cannot carry.
func filterEnv(filters []string) []string {
	if len(filters) == 0 {
		return childEnv(nil)
	}
	env := make([]string, 0, 8*len(filters)+1)
	n := 0
	for _, f := range filters {
		for _, kv := range [][2]string{{"clean", ""}, {"smudge", ""}, {"process", ""}, {"required", "false"}} {
			i := strconv.Itoa(n)
			env = append(env, "GIT_CONFIG_KEY_"+i+"=filter."+f+"."+kv[0], "GIT_CONFIG_VALUE_"+i+"="+kv[1])
			n++
		}
	}
	return childEnv(append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n)))
}

// place names the repository explicitly, so that core.worktree and discovery have no say.
func (r *Repo) place(args ...string) []string {
	return append([]string{"--git-dir=" + r.gitDir, "--work-tree=."}, args...)
}

func (r *Repo) stream(ctx context.Context, env []string, read func(io.Reader) error, args ...string) error {
	return r.streamFrom(ctx, nil, env, read, args...)
}

// streamFrom is stream for a child that reads; nil is nothing to read.
func (r *Repo) streamFrom(ctx context.Context, in io.Reader, env []string, read func(io.Reader) error, args ...string) error {
	c := child{program: r.program, dir: childDir(r.dir), env: env, timeout: r.limit, stdin: in,
		args: append(append([]string{}, safeFlags...), args...)}
	return c.run(ctx, read)
}

func (r *Repo) output(ctx context.Context, env []string, args ...string) ([]byte, error) {
	var b bytes.Buffer
	err := r.stream(ctx, env, func(in io.Reader) error {
		_, err := io.Copy(&b, io.LimitReader(in, 1<<20))
		return err
	}, args...)
	return b.Bytes(), err
}

// git runs one subcommand on this repository, filters off.
func (r *Repo) git(ctx context.Context, read func(io.Reader) error, args ...string) error {
	return r.stream(ctx, r.env, read, r.place(args...)...)
}

// failed turns a child's failure into a fault; what git said stays in the cause.
func (r *Repo) failed(err error) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	if errors.Is(err, errCut) {
		return fault.Wrap(err, fault.OutputBudgetExceeded, "git printed more than can be read; name paths to get less")
	}
	return fault.Wrap(err, fault.GitFailed, "git could not do this in the Project's repository")
}

// ResolveCommit turns a full id into itself after checking that it names a commit here.
func (r *Repo) ResolveCommit(ctx context.Context, rev string) (string, error) {
	out, err := r.output(ctx, r.env, r.place("rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")...)
	if exitCode(err) > 0 {
		return "", fault.Wrap(err, fault.InvalidArguments, "there is no such commit in the Project's repository").
			WithReason("unknown_commit")
	}
	return strings.TrimSpace(string(out)), r.failed(err)
}

// Head is the commit of HEAD, empty before the first one.
func (r *Repo) Head(ctx context.Context) (string, error) {
	id, err := r.ResolveCommit(ctx, "HEAD")
	if fault.KindOf(err) == fault.InvalidArguments {
		return "", nil
	}
	return id, err
}

// Operation is what is in progress: merge, rebase, cherry_pick, revert, bisect, or empty.
func (r *Repo) Operation() string {
	for _, o := range [][2]string{{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry_pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"}} {
		if _, err := os.Lstat(filepath.Join(r.gitDir, o[0])); err == nil {
			return o[1]
		}
	}
	return ""
}

// nothing reads output that nobody wants.
func nothing(in io.Reader) error {
	_, err := io.Copy(io.Discard, in)
	return err
}
