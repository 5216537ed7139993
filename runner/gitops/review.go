package gitops

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

func gitReview(ctx context.Context, p *runner.Project, in wire.GitReviewIn) (wire.GitReviewOut, error) {
	scope, word, err := scopeOf(wire.DiffScope{Base: in.Base, Head: in.Head})
	if err != nil {
		return wire.GitReviewOut{}, err
	}
	if word != "committed" {
		scope, word = git.Scope{AgainstHead: true}, "uncommitted"
	}
	return with(ctx, p, func(repo *git.Repo) (wire.GitReviewOut, error) {
		r := &review{files: map[string]*wire.ReviewFile{}, out: wire.GitReviewOut{Scope: word, Base: in.Base, Head: in.Head,
			Deterministic: true, FiltersDisabled: repo.FiltersDisabled(), Reasons: []string{}}}
		return r.out, r.read(ctx, repo, scope)
	})
}

// review collects the files of a change by their raw path.
type review struct {
	out   wire.GitReviewOut
	files map[string]*wire.ReviewFile
}

func (r *review) read(ctx context.Context, repo *git.Repo, scope git.Scope) error {
	err := repo.Changed(ctx, scope, func(c git.FileChange) error {
		if f := r.files[c.Path]; f != nil && f.Change == git.Unmerged {
			return nil
		}
		r.add(c.Path, c.Orig, c.Change)
		return nil
	})
	if err == nil {
		err = repo.Stat(ctx, scope, func(s git.FileStat) error {
			if f := r.files[s.Path]; f != nil {
				f.Additions, f.Deletions, f.Binary = max(f.Additions, s.Additions), max(f.Deletions, s.Deletions), f.Binary || s.Binary
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	if scope.Base != "" {
		n, err := repo.Commits(ctx, scope.Base, scope.Head)
		if err != nil {
			return err
		}
		r.out.Commits = &n
	} else if err := r.uncommitted(ctx, repo); err != nil {
		return err
	}
	if err := r.symbols(ctx, repo, scope); err != nil {
		return err
	}
	r.sum()
	return nil
}

func (r *review) add(p, orig, change string) {
	f := &wire.ReviewFile{Change: change}
	f.Path, f.OrigPath, f.Lossy = names(p, orig)
	f.Class = classOf(f.Path)
	r.files[p] = f
}

// uncommitted adds what a diff does not show: untracked files, and which are in a conflict.
func (r *review) uncommitted(ctx context.Context, repo *git.Repo) error {
	at, err := repo.Status(ctx, func(e git.StatusEntry) error {
		switch {
		case e.Untracked:
			r.add(e.Path, "", "untracked")
		case e.Conflicted:
			if r.files[e.Path] == nil {
				r.add(e.Path, "", git.Unmerged)
			}
			r.files[e.Path].Change = git.Unmerged
		}
		return nil
	})
	r.out.Head = at.Commit
	return err
}

// symbols reads the beginning of the diff for the lines that git shows beside hunks.
func (r *review) symbols(ctx context.Context, repo *git.Repo, scope git.Scope) error {
	room := maxReviewSymbols
	err := repo.Patch(ctx, scope, func(in io.Reader) error {
		counted := &countingReader{in: io.LimitReader(in, maxReviewDiff)}
		pr := git.NewPatchReader(counted)
		var file *wire.ReviewFile
		for {
			piece, err := pr.Next()
			r.out.Coverage.DiffBytes = counted.n
			switch {
			case errors.Is(err, io.EOF):
				if counted.n == maxReviewDiff {
					return git.Enough
				}
				r.out.Coverage.DiffComplete = true
				return nil
			case err != nil:
				return err
			case piece.File != nil:
				file = r.files[piece.File.Path]
			case piece.Hunk != nil && file != nil && piece.Hunk.Section != "" && room > 0:
				s := clip(piece.Hunk.Section, maxReviewSymbolChars)
				if len(file.Symbols) < maxReviewFileSymbols && !slices.Contains(file.Symbols, s) {
					file.Symbols = append(file.Symbols, s)
					room--
				}
			}
		}
	})
	if err == nil && !r.out.Coverage.DiffComplete {
		r.because("diff_bytes")
	}
	return err
}

type countingReader struct {
	in io.Reader
	n  int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += n
	return n, err
}

func (r *review) because(reason string) {
	r.out.Truncated = true
	if !slices.Contains(r.out.Reasons, reason) {
		r.out.Reasons = append(r.out.Reasons, reason)
	}
}

// sum makes the answer of the files.
func (r *review) sum() {
	all := make([]*wire.ReviewFile, 0, len(r.files))
	for _, f := range r.files {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *wire.ReviewFile) int {
		return cmp.Or(cmp.Compare(b.Additions+b.Deletions, a.Additions+a.Deletions), cmp.Compare(a.Path, b.Path))
	})
	classes, systems := map[string]*wire.ReviewGroup{}, map[string]*wire.ReviewGroup{}
	r.out.Files = []wire.ReviewFile{}
	page := pager{limit: maxReviewFiles, room: reviewFilesChars}
	for _, f := range all {
		r.count(f)
		grouped(classes, f.Class, f)
		grouped(systems, subsystemOf(f.Path), f)
		size := chars(f.Path) + chars(f.OrigPath) + 2*entryFrame
		for _, s := range f.Symbols {
			size += chars(s) + 3
		}
		if page.take(size) {
			r.out.Files = append(r.out.Files, *f)
		}
	}
	if len(r.out.Files) < len(all) {
		if r.because("output_budget"); len(r.out.Files) == maxReviewFiles {
			r.out.Reasons[len(r.out.Reasons)-1] = "max_files"
		}
	}
	r.out.Classes = r.groups(classes, len(classes), "")
	r.out.Subsystems = r.groups(systems, maxReviewSubsystems, "max_subsystems")
	r.out.Signals = r.signals(all)
	r.out.Bounds = map[string]int{"files": maxReviewFiles, "subsystems": maxReviewSubsystems, "signals": maxReviewSignals,
		"paths_per_signal": maxReviewSignalPaths, "symbols_per_file": maxReviewFileSymbols, "symbols": maxReviewSymbols, "diff_bytes": maxReviewDiff}
}

func (r *review) count(f *wire.ReviewFile) {
	s := &r.out.Stats
	s.Files++
	s.Additions += f.Additions
	s.Deletions += f.Deletions
	if f.Binary {
		s.Binary++
	}
	switch f.Change {
	case git.Added, git.Copied:
		s.Added++
	case git.Deleted:
		s.Deleted++
	case git.Renamed:
		s.Renamed++
	case git.Unmerged:
		s.Conflicted++
	case "untracked":
		s.Untracked++
	default:
		s.Modified++
	}
}

func grouped(groups map[string]*wire.ReviewGroup, name string, f *wire.ReviewFile) {
	g := groups[name]
	if g == nil {
		g = &wire.ReviewGroup{Name: name}
		groups[name] = g
	}
	g.Files++
	g.Additions += f.Additions
	g.Deletions += f.Deletions
}

// groups are the largest ones first.
func (r *review) groups(all map[string]*wire.ReviewGroup, most int, reason string) []wire.ReviewGroup {
	out := make([]wire.ReviewGroup, 0, len(all))
	for _, g := range all {
		if len(g.Name) <= maxReviewPath {
			out = append(out, *g)
		}
	}
	slices.SortFunc(out, func(a, b wire.ReviewGroup) int {
		return cmp.Or(cmp.Compare(b.Additions+b.Deletions, a.Additions+a.Deletions), cmp.Compare(b.Files, a.Files), cmp.Compare(a.Name, b.Name))
	})
	if len(out) > most || len(out) < len(all) {
		r.because(reason)
	}
	return out[:min(most, len(out))]
}

// signals are what a reviewer should look at, found by names and counts.
func (r *review) signals(all []*wire.ReviewFile) []wire.ReviewSignal {
	tested := slices.ContainsFunc(all, func(f *wire.ReviewFile) bool { return f.Class == classTest && f.Change != git.Deleted })
	live := func(f *wire.ReviewFile) bool { return f.Change != git.Deleted }
	out := []wire.ReviewSignal{}
	room := reviewSignalChars
	for _, s := range []struct {
		kind string
		is   func(*wire.ReviewFile) bool
	}{
		{"merge_conflict", func(f *wire.ReviewFile) bool { return f.Change == git.Unmerged }},
		{"sensitive_file", func(f *wire.ReviewFile) bool { return live(f) && relpath.Sensitive(f.Path) }},
		{"tests_deleted", func(f *wire.ReviewFile) bool { return f.Class == classTest && !live(f) }},
		{"source_without_tests", func(f *wire.ReviewFile) bool { return !tested && f.Class == classSource && live(f) }},
		{"migration_changed", func(f *wire.ReviewFile) bool { return f.Class == classMigration }},
		{"dependencies_changed", func(f *wire.ReviewFile) bool { return f.Class == classDependency }},
		{"build_changed", func(f *wire.ReviewFile) bool { return f.Class == classBuild }},
		{"git_settings_changed", func(f *wire.ReviewFile) bool {
			return oneOf(f.Path, ".gitattributes", ".gitmodules", ".gitignore")
		}},
		{"instructions_changed", func(f *wire.ReviewFile) bool { return slices.Contains(instructionFiles, f.Path) }},
		{"large_change", func(f *wire.ReviewFile) bool {
			return f.Class != classGenerated && f.Additions+f.Deletions >= reviewLargeLines
		}},
		{"binary_changed", func(f *wire.ReviewFile) bool { return f.Binary && live(f) }},
		{"generated_changed", func(f *wire.ReviewFile) bool { return f.Class == classGenerated }},
	} {
		signal := wire.ReviewSignal{Kind: s.kind, Paths: []string{}}
		for _, f := range all {
			if !s.is(f) {
				continue
			}
			signal.Count++
			if size := chars(f.Path) + 3; len(signal.Paths) < maxReviewSignalPaths && len(f.Path) <= maxReviewPath && size <= room {
				signal.Paths = append(signal.Paths, f.Path)
				room -= size
			}
		}
		if signal.Count > 0 && len(out) < maxReviewSignals {
			out = append(out, signal)
		}
	}
	return out
}

func oneOf(s string, list ...string) bool { return slices.Contains(list, s) }
