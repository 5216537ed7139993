package files

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// searchTexts answers search_project_texts: query after query, one bad query does not spoil
// the others. At the time limit each query tells what it found so far.
func (s *service) searchTexts(ctx context.Context, p *runner.Project, in wire.SearchTextsIn) (wire.SearchTextsOut, error) {
	if len(in.Queries) == 0 || len(in.Queries) > wire.MaxSearchQueries {
		return wire.SearchTextsOut{}, fault.New(fault.InvalidArguments, "queries must have 1 to %d entries", wire.MaxSearchQueries).WithField("queries")
	}
	longest := 0
	for _, q := range in.Queries {
		longest = max(longest, timeoutOf(q))
	}
	within, stop := context.WithTimeout(ctx, time.Duration(longest)*time.Second)
	defer stop()
	l := &listing{p: p}
	out := wire.SearchTextsOut{Items: make([]wire.SearchResult, len(in.Queries))}
	budget := maxBatchBytes
	for i, q := range in.Queries {
		rest := len(in.Queries) - i - 1
		r, used, err := s.query(within, l, q, min(maxQueryBytes, max(minQueryBytes, budget-rest*minQueryBytes)))
		if ctx.Err() != nil {
			return out, timedOut(ctx)
		}
		if err != nil {
			e := fault.As(err)
			r = wire.SearchResult{Matches: []wire.SearchMatch{}, Backend: wire.BackendNative,
				ErrorKind: string(e.Kind), Reason: e.Reason, Error: e.Message}
		}
		r.Index, r.Success = i, err == nil
		budget -= used
		out.Items[i] = r
	}
	return out, nil
}

func timeoutOf(q wire.SearchQuery) int {
	return clamp(q.TimeoutSecs, wire.SearchTimeoutSecs, 1, wire.MaxSearchTimeoutSecs)
}

// query is one search over a listing.
func (s *service) query(ctx context.Context, l *listing, q wire.SearchQuery, budget int) (wire.SearchResult, int, error) {
	if err := refuseMode(q.Mode); err != nil {
		return wire.SearchResult{}, 0, err
	}
	p, err := newPattern(q.Pattern)
	if err != nil {
		return wire.SearchResult{}, 0, err
	}
	g, err := newGlobs(q.Include, q.Exclude)
	if err != nil {
		return wire.SearchResult{}, 0, err
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(timeoutOf(q))*time.Second)
	defer stop()
	t := newTree(l.p.Root)
	defer t.close()
	at, err := placeOf(t, q.Path)
	if err != nil {
		return wire.SearchResult{}, 0, err
	}
	rg := &narrowing{ctx: ctx, program: s.ripgrep(), root: l.p.Root, base: at.base, p: p}
	defer rg.close()
	found, all := at.one, true
	if found == nil {
		rg.early()
		if found, all, err = l.under(ctx, t, at.base); err != nil {
			return wire.SearchResult{}, 0, err
		}
	}
	files := make([]string, 0, len(found))
	for _, f := range found {
		if name, _ := git.Show(f); g.match(name) {
			files = append(files, f)
		}
	}
	r := &gathering{q: clampQuery(q), budget: budget, result: wire.SearchResult{Matches: []wire.SearchMatch{},
		Backend: wire.BackendNative, CountComplete: true}}
	if some, ok := rg.keep(files); ok {
		files, r.result.Backend = some, wire.BackendRipgrep
	}
	r.run(ctx, l, p, files)
	if !all {
		r.stop(wire.TruncatedEntries)
	}
	return r.result, r.used, nil
}

// searched is what the path of a query names: one file, or the directory base.
type searched struct {
	one  []string
	base string
}

func placeOf(t *tree, path string) (searched, error) {
	parts, err := relpath.Split(path)
	if err != nil {
		return searched{}, err
	}
	if len(parts) > 0 {
		p, err := t.find(parts, finding{follow: true})
		if err != nil {
			return searched{}, err
		}
		switch {
		case p.info.Mode().IsRegular():
			return searched{one: []string{p.path}, base: p.path}, nil
		case !p.info.IsDir():
			return searched{}, badPath(reasonNotRegular, nil)
		}
	}
	_, base, err := t.directory(parts)
	return searched{base: base}, err
}

func clampQuery(q wire.SearchQuery) wire.SearchQuery {
	q.Before = min(max(q.Before, 0), wire.MaxSearchContext)
	q.After = min(max(q.After, 0), wire.MaxSearchContext)
	if q.Limit <= 0 {
		q.Limit = wire.SearchLimit
	}
	q.Limit = min(q.Limit, wire.MaxSearchLimit)
	if q.Mode != wire.ModeFiles && q.Mode != wire.ModeCount {
		q.Mode = wire.ModeMatches
	}
	return q
}

// fileHits is what one file gave.
type fileHits struct {
	matches []wire.SearchMatch
	count   int  // matching lines seen
	more    bool // there are further ones
	large   bool // not looked at: too large
}

// gathering puts the files' matches together in order, within the query's bounds.
type gathering struct {
	q      wire.SearchQuery
	budget int
	used   int
	done   bool
	result wire.SearchResult
}

// chunk is the files searched before results are put together; small enough that a limit
// reached early costs little, large enough for all workers.
const chunk = 256

func (r *gathering) run(ctx context.Context, l *listing, p *pattern, files []string) {
	trees := make([]*tree, searchWorkers)
	for i := range trees {
		trees[i] = newTree(l.p.Root)
		defer trees[i].close()
	}
	for part := range slices.Chunk(files, chunk) {
		hits := make([]fileHits, len(part))
		var wg sync.WaitGroup
		share := (len(part) + searchWorkers - 1) / searchWorkers
		for w := 0; w*share < len(part); w++ {
			from, to := w*share, min(len(part), (w+1)*share)
			wg.Go(func() {
				for i := from; i < to && ctx.Err() == nil; i++ {
					hits[i] = r.searchFile(trees[w], part[i], p)
				}
			})
		}
		wg.Wait()
		if ctx.Err() != nil {
			r.stop(wire.TruncatedTimeout)
		}
		for i, h := range hits {
			r.add(part[i], h)
			if r.done {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// stop says that there may be more; the first reason counts.
func (r *gathering) stop(reason string) {
	r.result.CountComplete = false
	if !r.result.Truncated {
		r.result.Truncated, r.result.TruncationReason = true, reason
	}
}

func (r *gathering) add(path string, h fileHits) {
	if h.large {
		r.stop(wire.TruncatedSize)
	}
	if h.count == 0 {
		return
	}
	if r.q.Mode != wire.ModeMatches {
		r.addFile(path, h)
		return
	}
	for _, m := range h.matches {
		enc, _ := json.Marshal(m)
		switch {
		case r.result.Count >= r.q.Limit:
			r.stop(wire.TruncatedLimit)
			r.done = true
			return
		case r.used+len(enc) > r.budget && r.result.Count > 0:
			r.stop(wire.TruncatedBytes)
			r.done = true
			return
		}
		r.used += len(enc)
		r.result.Count++
		r.result.Matches = append(r.result.Matches, m)
	}
	if h.more {
		r.stop(wire.TruncatedLimit)
		r.done = true
	}
}

// addFile counts on after the limit of files in mode count: its point is the total.
func (r *gathering) addFile(path string, h fileHits) {
	f := wire.SearchFile{}
	f.Path, f.Lossy = git.Show(path)
	if r.q.Mode == wire.ModeCount {
		f.Count = h.count
		r.result.Count += h.count
	}
	cost := len(path) + 40
	if len(r.result.Files) < r.q.Limit && r.used+cost <= r.budget {
		r.used += cost
		r.result.Files = append(r.result.Files, f)
		if r.q.Mode == wire.ModeFiles {
			r.result.Count++
		}
		return
	}
	r.result.Truncated = true
	if r.result.TruncationReason == "" {
		r.result.TruncationReason = wire.TruncatedLimit
	}
	if r.q.Mode == wire.ModeFiles {
		r.result.CountComplete, r.done = false, true
	}
}

// searchFile searches one file of the listing; what is no readable text file has no match.
func (r *gathering) searchFile(t *tree, path string, p *pattern) fileHits {
	at, err := t.find(fields(path), finding{})
	if err != nil {
		return fileHits{}
	}
	text, _, err := loadText(at)
	if err != nil {
		return fileHits{large: fault.As(err).Reason == reasonTooLarge}
	}
	var h fileHits
	shown, lossy := git.Show(path)
	p.each(text, func(m hit) bool {
		h.count++
		if r.q.Mode != wire.ModeMatches {
			return r.q.Mode == wire.ModeCount
		}
		if len(h.matches) > r.q.Limit {
			h.more = true
			return false
		}
		h.matches = append(h.matches, wire.SearchMatch{Path: shown, Lossy: lossy, Line: m.line,
			Preview: preview(text[m.start:m.end], m.at), Before: linesBefore(text, m.start, r.q.Before),
			After: linesAfter(text, m.end, r.q.After)})
		return true
	})
	return h
}

// loadText reads a text file of searchable size; a NUL makes it no text.
func loadText(at place) ([]byte, int64, error) {
	f, info, err := at.latest()
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if info.Size() > maxSearchBytes {
		return nil, 0, badPath(reasonTooLarge, nil)
	}
	text := make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, text)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, 0, walkFault(err)
	}
	text = text[:n]
	if slices.Contains(text, 0) {
		return nil, 0, badPath(reasonBinary, nil)
	}
	return text, info.Size(), nil
}
