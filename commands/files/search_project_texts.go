package files

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// SearchIn is the input of search_project_texts.
type SearchIn struct {
	Project   string  `json:"project"`
	SessionID string  `json:"session_id,omitempty"`
	Queries   []Query `json:"queries"`
}

// Query is one search.
type Query struct {
	Pattern       string   `json:"pattern"`
	Path          string   `json:"path,omitempty"`
	IncludeGlobs  []string `json:"include_globs,omitempty"`
	ExcludeGlobs  []string `json:"exclude_globs,omitempty"`
	ContextBefore int      `json:"context_before,omitempty"`
	ContextAfter  int      `json:"context_after,omitempty"`
	ResultMode    string   `json:"result_mode,omitempty"`
	Limit         int      `json:"limit,omitempty"`
	TimeoutSecs   int      `json:"timeout_secs,omitempty"`
}

// Search searches file contents line by line.
var Search = call.Spec{
	Name: "search_project_texts", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: SearchIn{}, Evidence: searchEvidence, Run: search,
}

func searchEvidence(args json.RawMessage) event.Input {
	var in SearchIn
	_ = json.Unmarshal(args, &in)
	return event.Input{QueryCount: len(in.Queries)}
}

func search(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[SearchIn](c)
	if err != nil {
		return call.Result{}, err
	}
	var ask wire.SearchTextsIn
	longest := 0
	for _, q := range in.Queries {
		w := wire.SearchQuery{Pattern: q.Pattern, Path: q.Path, Include: q.IncludeGlobs, Exclude: q.ExcludeGlobs,
			Before: clamp(q.ContextBefore, 0, 0, MaxContextLines), After: clamp(q.ContextAfter, 0, 0, MaxContextLines),
			Limit: clamp(q.Limit, wire.SearchLimit, 1, MaxSearchLimit), Mode: q.ResultMode,
			TimeoutSecs: clamp(q.TimeoutSecs, wire.SearchTimeoutSecs, 1, MaxSearchTimeout)}
		longest = max(longest, w.TimeoutSecs)
		ask.Queries = append(ask.Queries, w)
	}
	if c.Target == nil {
		return call.Result{}, noRunner()
	}
	out, err := call.AskTarget[wire.SearchTextsOut](ctx, c, *c.Target, wire.OpSearchTexts, ask,
		time.Duration(longest)*time.Second+searchMargin)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: out, Facts: call.Facts{Observed: matched(out), Context: found(out)}}, nil
}

// matched are the files with matches, in order, each once.
func matched(out wire.SearchTextsOut) []string {
	var paths []string
	seen := map[string]bool{}
	add := func(p string, lossy bool) {
		if !seen[p] && !lossy {
			seen[p] = true
			paths = append(paths, p)
		}
	}
	for _, item := range out.Items {
		for _, m := range item.Matches {
			add(m.Path, m.Lossy)
		}
		for _, f := range item.Files {
			add(f.Path, f.Lossy)
		}
	}
	return paths
}

// found sums a search up: the matches that were shown, and the queries that failed.
func found(out wire.SearchTextsOut) *event.ContextResult {
	sum := &event.ContextResult{}
	for _, r := range out.Items {
		sum.Items += len(r.Matches) + len(r.Files)
		sum.Truncated = sum.Truncated || r.Truncated
		if !r.Success {
			sum.Failed++
		}
	}
	return sum
}
