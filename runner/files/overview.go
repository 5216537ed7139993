package files

import (
	"context"
	"path"
	"slices"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// overview answers read_project_overview: names and their known roles down to a depth,
// breadth first, so that the limit cuts the deepest. No file is opened.
func (s *service) overview(ctx context.Context, p *runner.Project, in wire.OverviewIn) (wire.OverviewOut, error) {
	parts, err := relpath.Split(in.Path)
	if err != nil {
		return wire.OverviewOut{}, at(err, "path")
	}
	t := newTree(p.Root)
	defer t.close()
	_, base, err := t.directory(parts)
	if err != nil {
		return wire.OverviewOut{}, at(err, "path")
	}
	o := &overviewing{t: t, base: base, depth: clamp(in.MaxDepth, wire.OverviewDepth, 1, wire.MaxOverviewDepth),
		limit: clamp(in.Limit, wire.OverviewLimit, wire.MinOverviewLimit, wire.MaxOverviewLimit), types: map[string]bool{}}
	o.out = wire.OverviewOut{SchemaVersion: 1, Path: shown(base), Manifests: []wire.NamedFile{}, KeyFiles: []wire.NamedFile{},
		TopLevel: []wire.DirEntry{}, Directories: []wire.DirSummary{}, Suggested: []wire.SuggestRead{}, Warnings: []string{},
		Languages: map[string]int{}, Roots: wire.OverviewRoots{Source: []string{}, Tests: []string{}, Docs: []string{}}}
	if err := o.look(ctx); err != nil {
		return wire.OverviewOut{}, at(err, "path")
	}
	o.finish(p.Git)
	return o.out, nil
}

func clamp(n, absent, low, high int) int {
	if n == 0 {
		n = absent
	}
	return min(max(n, low), high)
}

// overviewing is one look in progress.
type overviewing struct {
	t            *tree
	base         string
	depth, limit int
	size         int // of the names shown
	types        map[string]bool
	out          wire.OverviewOut
}

type level struct {
	path  string
	depth int
}

func (o *overviewing) look(ctx context.Context) error {
	queue := []level{{o.base, 1}}
	for len(queue) > 0 && !o.full() {
		at := queue[0]
		queue = queue[1:]
		dir, _, err := o.t.directory(fields(at.path))
		var names []name
		all := true
		if err == nil {
			names, all, err = readNames(ctx, dir)
		}
		switch {
		case ctx.Err() != nil:
			return timedOut(ctx)
		case err != nil && at.path == o.base:
			return err
		case err != nil:
			o.warn("a directory could not be read and was left out")
			continue
		case !all:
			o.warn("a directory has more entries than are looked at")
		}
		sum := wire.DirSummary{Path: shown(at.path)}
		for _, n := range names {
			if n.kind == wire.EntryDir {
				sum.Dirs++
			} else {
				sum.Files++
			}
			if o.full() {
				o.out.Scan.Truncated = true
				continue
			}
			o.out.Scan.Entries++
			o.size += len(at.path) + len(n.text) + 50
			if at.path == o.base {
				o.out.TopLevel = append(o.out.TopLevel, describe(dir, at.path, n))
			}
			if next, deeper := o.entry(at, n); deeper {
				queue = append(queue, next)
			}
		}
		o.out.Directories = append(o.out.Directories, sum)
	}
	o.out.Scan.Truncated = o.out.Scan.Truncated || len(queue) > 0
	return nil
}

// full: an entry may be shown under two roles, so half the room is counted.
func (o *overviewing) full() bool {
	return o.out.Scan.Entries >= o.limit || o.size > wire.MaxResultChars/2
}

func (o *overviewing) warn(text string) {
	if !slices.Contains(o.out.Warnings, text) {
		o.out.Warnings = append(o.out.Warnings, text)
	}
}

// entry notes the role of one name and says whether to look into it.
func (o *overviewing) entry(at level, n name) (level, bool) {
	full := n.text
	if at.path != "" {
		full = at.path + "/" + n.text
	}
	seen, _ := git.Show(full)
	lower := strings.ToLower(n.text)
	if n.kind == wire.EntryDir {
		if skippedDirs[lower] {
			o.out.Directories = append(o.out.Directories, wire.DirSummary{Path: seen, Skipped: true})
			return level{}, false
		}
		switch {
		case testDirs[lower]:
			o.out.Roots.Tests = append(o.out.Roots.Tests, seen)
		case sourceDirs[lower]:
			o.out.Roots.Source = append(o.out.Roots.Source, seen)
		case docDirs[lower]:
			o.out.Roots.Docs = append(o.out.Roots.Docs, seen)
		}
		return level{full, at.depth + 1}, at.depth < o.depth
	}
	if n.kind == wire.EntryOther {
		return level{}, false
	}
	if m, ok := manifests[lower]; ok {
		o.out.Manifests = append(o.out.Manifests, wire.NamedFile{Path: seen, Kind: m})
		o.types[m] = true
	}
	if k := keyKind(lower); k != "" {
		o.out.KeyFiles = append(o.out.KeyFiles, wire.NamedFile{Path: seen, Kind: k})
	}
	if lang, ok := languages[path.Ext(lower)]; ok {
		o.out.Languages[lang]++
	}
	return level{}, false
}

// finish derives what follows from the names seen.
func (o *overviewing) finish(isGit bool) {
	out := &o.out
	out.Scan.MaxDepth, out.Scan.Limit = o.depth, o.limit
	out.ProjectTypes = []string{}
	for t := range o.types {
		out.ProjectTypes = append(out.ProjectTypes, t)
	}
	slices.Sort(out.ProjectTypes)
	if !isGit && o.base == "" {
		o.warn("the Project is not a git repository: git tools will not work here")
	}
	if out.Scan.Truncated {
		o.warn("the limit was reached; name a path to look deeper")
	}
	for _, kind := range []string{"instructions", "readme", "contributing"} {
		for _, f := range out.KeyFiles {
			if f.Kind == kind {
				o.suggest(f.Path, suggestions[kind])
			}
		}
	}
	for _, f := range out.Manifests {
		o.suggest(f.Path, suggestions["manifest"])
	}
}

// maxSuggestions of files to read first.
const maxSuggestions = 6

func (o *overviewing) suggest(p, why string) {
	if len(o.out.Suggested) < maxSuggestions {
		o.out.Suggested = append(o.out.Suggested, wire.SuggestRead{Path: p, Why: why})
	}
}

// refuseMode keeps an unknown search mode from passing for the default.
func refuseMode(mode string) error {
	if mode == "" || mode == wire.ModeMatches || mode == wire.ModeFiles || mode == wire.ModeCount {
		return nil
	}
	return fault.New(fault.InvalidArguments, "result_mode must be one of matches, files_with_matches, count").WithReason("invalid_mode")
}
