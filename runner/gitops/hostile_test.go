package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// hostile is one way in which a repository names a program for git to run.
type hostile struct {
	name string
	// plant prepares the repository; run is a command that leaves a marker.
	plant func(r *repo, run string)
	// control is what plain git runs the marker on; empty where this git has no such way in.
	control []string
	// refused tells that our ops refuse the repository; missing, that they may fail for want of
	// an object that would have to be fetched.
	refused, missing bool
}

var hostileMatrix = []hostile{
	{name: "fsmonitor", control: []string{"status"}, plant: func(r *repo, run string) {
		r.git("config", "core.fsmonitor", run)
	}},
	{name: "filter clean and smudge", control: []string{"status"}, plant: func(r *repo, run string) {
		r.git("config", "filter.evil.clean", run)
		r.git("config", "filter.evil.smudge", run)
		r.git("config", "filter.evil.required", "true")
		r.write(".gitattributes", "* filter=evil\n")
	}},
	{name: "filter process", control: []string{"status"}, plant: func(r *repo, run string) {
		r.git("config", "filter.evil.process", run)
		r.git("config", "filter.evil.required", "true")
		r.write(".gitattributes", "* filter=evil\n")
	}},
	{name: "filter with an odd name", control: []string{"status"}, plant: func(r *repo, run string) {
		r.git("config", "filter.a=b.C-d.clean", run)
		r.write(".gitattributes", "* filter=a=b.C-d\n")
	}},
	{name: "filter by included file", control: []string{"status"}, plant: func(r *repo, run string) {
		r.write("conf/extra", "[filter \"inc\"]\n\tclean = "+run+"\n")
		r.git("config", "include.path", "../conf/extra")
		r.write(".gitattributes", "* filter=inc\n")
	}},
	{name: "filter included on a branch", control: []string{"status"}, plant: func(r *repo, run string) {
		r.write("conf/extra", "[filter \"inc\"]\n\tclean = "+run+"\n")
		r.git("config", "includeIf.onbranch:main.path", "../conf/extra")
		r.write(".gitattributes", "* filter=inc\n")
	}},
	{name: "filter in the worktree's configuration", control: []string{"status"}, plant: func(r *repo, run string) {
		r.git("config", "extensions.worktreeConfig", "true")
		r.git("config", "--worktree", "filter.wt.clean", run)
		r.write(".gitattributes", "* filter=wt\n")
	}},
	{name: "external diff", control: []string{"diff"}, plant: func(r *repo, run string) {
		r.git("config", "diff.external", run)
	}},
	{name: "diff driver", control: []string{"diff"}, plant: func(r *repo, run string) {
		r.git("config", "diff.evil.command", run)
		r.write(".gitattributes", "* diff=evil\n")
	}},
	{name: "textconv", control: []string{"diff"}, plant: func(r *repo, run string) {
		r.git("config", "diff.evil.textconv", run)
		r.git("config", "diff.evil.cachetextconv", "true")
		r.write(".gitattributes", "* diff=evil\n")
	}},
	{name: "hooks", control: []string{"checkout", "-q", "-b", "other"}, plant: func(r *repo, run string) {
		plantHooks(r, filepath.Join(".git", "hooks"), run)
	}},
	{name: "hooks in the tree", control: []string{"checkout", "-q", "-b", "other"}, plant: func(r *repo, run string) {
		r.git("config", "core.hooksPath", "hooks")
		plantHooks(r, "hooks", run)
	}},
	{name: "gpg", control: []string{"log"}, plant: func(r *repo, run string) {
		signed := "tree " + r.git("rev-parse", "HEAD^{tree}") + "\nparent " + r.git("rev-parse", "HEAD") +
			"\nauthor A <a@x> 1700000000 +0000\ncommitter A <a@x> 1700000000 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----\n\nsigned\n"
		r.write(".git/raw", signed)
		r.git("update-ref", "HEAD", r.git("hash-object", "-t", "commit", "-w", ".git/raw"))
		r.git("config", "gpg.program", run)
		r.git("config", "log.showSignature", "true")
	}},
	{name: "ssh of a partial clone", missing: true, control: []string{"diff", "--cached"}, plant: func(r *repo, run string) {
		plantPartialClone(r, "ssh://host.invalid/x")
		r.git("config", "core.sshCommand", run)
	}},
	{name: "upload-pack of a partial clone", missing: true, control: []string{"diff", "--cached"}, plant: func(r *repo, run string) {
		plantPartialClone(r, r.dir)
		r.git("config", "remote.origin.uploadpack", run)
	}},
	{name: "ext transport of a partial clone", missing: true, control: []string{"-c", "protocol.ext.allow=always", "diff", "--cached"}, plant: func(r *repo, run string) {
		r.git("config", "protocol.ext.allow", "always")
		plantPartialClone(r, "ext::"+run)
	}},
	{name: "pagers and editors", control: []string{"commit", "--allow-empty"}, plant: func(r *repo, run string) {
		for _, key := range []string{"core.pager", "core.editor", "sequence.editor", "core.askPass", "interactive.diffFilter"} {
			r.git("config", key, run)
		}
		for _, key := range []string{"pager.status", "pager.diff", "pager.log", "pager.ls-files"} {
			r.git("config", key, run)
		}
	}},
	{name: "aliases", control: []string{"hidden"}, plant: func(r *repo, run string) {
		for _, name := range []string{"hidden", "status", "diff", "log", "ls-files", "rev-parse"} {
			r.git("config", "alias."+name, "!"+run)
		}
	}},
	{name: "submodule with its own settings", control: []string{"status"}, plant: func(r *repo, run string) {
		sub := newRepoIn(r.t, filepath.Join(r.dir, "sub"))
		sub.write("file", "a\n")
		sub.commit("sub")
		r.git("-c", "advice.addEmbeddedRepo=false", "add", "sub")
		sub.write("file", "b\n")
		sub.git("config", "core.fsmonitor", run)
	}},
	{name: "embedded repository", plant: func(r *repo, run string) {
		sub := newRepoIn(r.t, filepath.Join(r.dir, "inner"))
		sub.write("file", "a\n")
		sub.git("config", "core.fsmonitor", run)
	}},
	{name: "merge driver", control: []string{"merge", "-q", "side"}, plant: func(r *repo, run string) {
		r.write(".gitattributes", "* merge=evil\n")
		r.commit("attributes")
		r.git("checkout", "-q", "-b", "side")
		r.write("file", "side\n")
		r.commit("side")
		r.git("checkout", "-q", "main")
		r.write("file", "main\n")
		r.commit("main")
		r.git("config", "merge.evil.driver", run)
	}},
	{name: "credential helper and proxy", missing: true, plant: func(r *repo, run string) {
		plantPartialClone(r, "git://host.invalid/x")
		r.git("config", "credential.helper", "!"+run)
		r.git("config", "core.gitProxy", run)
		r.git("config", "core.alternateRefsCommand", run)
	}},
	{name: "git directory elsewhere", control: []string{"status"}, refused: true, plant: func(r *repo, run string) {
		away := filepath.Join(r.t.TempDir(), "away.git")
		if err := os.Rename(filepath.Join(r.dir, ".git"), away); err != nil {
			r.t.Fatal(err)
		}
		r.write(".git", "gitdir: "+away+"\n")
		r.git("config", "core.fsmonitor", run)
	}},
	{name: "linked git directory", control: []string{"status"}, refused: true, plant: func(r *repo, run string) {
		away := filepath.Join(r.t.TempDir(), "away.git")
		if err := os.Rename(filepath.Join(r.dir, ".git"), away); err != nil {
			r.t.Fatal(err)
		}
		if err := os.Symlink(away, filepath.Join(r.dir, ".git")); err != nil {
			r.t.Fatal(err)
		}
		r.git("config", "core.fsmonitor", run)
	}},
}

func plantHooks(r *repo, dir, run string) {
	for _, hook := range []string{"post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc", "post-merge"} {
		r.write(filepath.Join(dir, hook), "#!/bin/sh\n"+run+"\nexit 0\n")
		if err := os.Chmod(filepath.Join(r.dir, dir, hook), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
}

// plantPartialClone makes an object that the index names missing, to be fetched from url.
func plantPartialClone(r *repo, url string) {
	r.write("lazy", "content that is not here\n")
	r.git("add", "lazy")
	id := r.git("rev-parse", ":lazy")
	if err := os.Remove(filepath.Join(r.dir, ".git/objects", id[:2], id[2:])); err != nil {
		r.t.Fatal(err)
	}
	r.git("config", "core.repositoryFormatVersion", "1")
	r.git("config", "extensions.partialClone", "origin")
	r.git("config", "remote.origin.url", url)
	r.git("config", "remote.origin.promisor", "true")
}

// A hostile repository runs nothing on any op, and each way in is real: plain git takes it.
func TestHostileRepositoryRunsNothing(t *testing.T) {
	for _, h := range hostileMatrix {
		t.Run(h.name, func(t *testing.T) {
			r := newRepo(t)
			r.write("file", "one\n")
			r.write("other", "one\n")
			base := r.commit("base")
			marker := filepath.Join(t.TempDir(), "marker")
			script := filepath.Join(t.TempDir(), "evil")
			if err := os.WriteFile(script, []byte("#!/bin/sh\necho ran >> "+marker+"\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			h.plant(r, script)
			// Same size, other time: git has to look at the content.
			r.write("file", "two\n")
			if err := os.Chtimes(filepath.Join(r.dir, "file"), time.Now(), time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			forget(t, marker) // planting may have run it
			for op, err := range everyOp(t.Context(), r.p, base) {
				if ran(marker) {
					t.Errorf("%s ran the repository's program", op)
					forget(t, marker)
				}
				h.judge(t, op, err)
			}
			if len(h.control) > 0 {
				r.write("file", "six\n") // the last op may have put it back
				out, _ := r.tryGit(h.control...)
				if !ran(marker) {
					t.Errorf("git %v left no marker either: the trap is not real\n%s", h.control, out)
				}
			}
		})
	}
}

// judge holds that an op works, so that it did look, or refuses for the right reason.
func (h hostile) judge(t *testing.T, op string, err error) {
	f := fault.As(err)
	switch {
	case h.refused:
		if op != "observe_workspace" && (f == nil || f.Kind != fault.GitUnavailable || f.Reason != "git_dir_outside_project") {
			t.Errorf("%s was not refused: %v", op, err)
		}
	case err == nil, h.missing && f.Kind == fault.GitFailed, op == "restore_paths" && f.Reason == "content_filter":
	default:
		t.Errorf("%s: %v: %v", op, err, f.Unwrap())
	}
}

// everyOp runs every op and gives its error.
func everyOp(ctx context.Context, p *runner.Project, base string) map[string]error {
	out := map[string]error{}
	scopes := []wire.DiffScope{{}, {Cached: true}, {Base: base, Head: base}}
	note := func(name string, err error) { out[name] = err }
	_, err := observeWorkspace(ctx, p, wire.ObserveWorkspaceIn{Instructions: true})
	note("observe_workspace", err)
	_, err = trackedFiles(ctx, p, wire.TrackedFilesIn{Limit: 100})
	note("tracked_files", err)
	_, err = gitStatus(ctx, p, wire.GitStatusIn{Limit: 100})
	note("git_status", err)
	for _, s := range scopes {
		_, err = gitDiff(ctx, p, wire.GitDiffIn{DiffScope: s})
		note(fmt.Sprintf("git_diff %+v", s), err)
		_, err = gitDiffHunks(ctx, p, wire.DiffHunksIn{DiffScope: s})
		note(fmt.Sprintf("git_diff_hunks %+v", s), err)
	}
	_, err = gitLog(ctx, p, wire.GitLogIn{Limit: 10})
	note("git_log", err)
	_, err = workspaceChanges(ctx, p, wire.WorkspaceChangesIn{IncludeDiff: true})
	note("workspace_changes", err)
	_, err = gitReview(ctx, p, wire.GitReviewIn{})
	note("git_review", err)
	_, err = gitReview(ctx, p, wire.GitReviewIn{Base: base, Head: base})
	note("git_review of commits", err)
	_, err = hygiene(ctx, p, wire.HygieneIn{IncludeTracked: true})
	note("hygiene", err)
	for _, ignored := range []bool{false, true} { // as discard_untracked asks
		_, err = with(ctx, p, func(repo *git.Repo) (int, error) {
			return 0, repo.Untracked(ctx, nil, ignored, func(string) error { return nil })
		})
		note(fmt.Sprintf("untracked %v", ignored), err)
	}
	_, err = restorePaths(ctx, p, wire.RestorePathsIn{Paths: []string{"file"}})
	note("restore_paths", err)
	return out
}

func ran(marker string) bool { _, err := os.Stat(marker); return err == nil }

func forget(t *testing.T, marker string) {
	if err := os.Remove(marker); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// What the Runner's own environment says to git is not passed on.
func TestEnvironmentRunsNothing(t *testing.T) {
	r := newRepo(t)
	r.write("file", "one\n")
	base := r.commit("base")
	r.write("file", "two\n")
	other := newRepoIn(t, filepath.Join(t.TempDir(), "other"))
	other.write("file", "secret\n")
	other.commit("other")
	marker := filepath.Join(t.TempDir(), "marker")
	script := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho ran >> "+marker+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "PAGER", "GIT_EDITOR", "GIT_ASKPASS", "GIT_PROXY_COMMAND"} {
		t.Setenv(name, script)
	}
	t.Setenv("GIT_DIR", filepath.Join(other.dir, ".git"))
	t.Setenv("GIT_WORK_TREE", other.dir)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other.dir, ".git/index"))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
	t.Setenv("GIT_CONFIG_VALUE_0", script)
	t.Setenv("GIT_TRACE", filepath.Join(t.TempDir(), "trace"))
	for op, err := range everyOp(t.Context(), r.p, base) {
		if err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	if ran(marker) {
		t.Error("a program named in the environment ran")
	}
	if got := must(t, r.p, gitLog, wire.GitLogIn{Limit: 5}); len(got.Commits) != 1 || got.Commits[0].Commit != base {
		t.Errorf("another repository was read: %+v", got)
	}
}

// core.worktree does not lead git elsewhere.
func TestWorktreeSettingHasNoSay(t *testing.T) {
	r := newRepo(t)
	r.write("file", "one\n")
	r.commit("base")
	away := t.TempDir()
	if err := os.WriteFile(filepath.Join(away, "secret-name"), []byte("secret text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.git("config", "core.worktree", away)
	got := must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{IncludeDiff: true})
	if !got.Clean {
		t.Errorf("not clean: %+v", got)
	}
	if out, _ := r.tryGit("status", "--porcelain", "-uall"); !strings.Contains(out, "secret-name") {
		t.Errorf("plain git does not follow the setting: %s", out)
	}
}
