package files

import (
	"bytes"
	"context"
	"encoding/json"

	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// searchFile answers search_file_context: the matches of one file, each line shown once.
func (s *service) searchFile(ctx context.Context, p *runner.Project, in wire.SearchFileIn) (wire.SearchFileOut, error) {
	pat, err := newPattern(in.Pattern)
	if err != nil {
		return wire.SearchFileOut{}, at(err, "pattern")
	}
	parts, err := relpath.SplitFile(in.Path)
	if err != nil {
		return wire.SearchFileOut{}, at(err, "path")
	}
	t := newTree(p.Root)
	defer t.close()
	where, err := t.find(parts, finding{follow: true})
	if err != nil {
		return wire.SearchFileOut{}, at(err, "path")
	}
	text, _, err := loadText(where)
	if err != nil {
		return wire.SearchFileOut{}, at(err, "path")
	}
	limit := in.Limit
	if limit <= 0 {
		limit = wire.SearchLimit
	}
	limit = min(limit, wire.MaxSearchLimit)
	out := wire.SearchFileOut{Path: where.path, SHA256: hashOf(text), Bytes: int64(len(text)), CountComplete: true,
		Matches: []wire.FileMatch{}}
	lf, crlf := bytes.Count(text, []byte("\n")), bytes.Count(text, []byte("\r\n"))
	out.EOL, out.TotalLines = endings(lf-crlf, crlf), lf
	if len(text) > 0 && text[len(text)-1] != '\n' {
		out.TotalLines++
	}
	var hits []hit
	pat.each(text, func(h hit) bool {
		if out.Count++; len(hits) <= limit {
			hits = append(hits, h)
		}
		return ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return out, timedOut(ctx)
	}
	show(&out, text, hits, limit, clamp(in.Before, 0, 0, wire.MaxSearchContext), clamp(in.After, 0, 0, wire.MaxSearchContext))
	return out, nil
}

// show adds up to limit matches with their surroundings.
func show(out *wire.SearchFileOut, text []byte, hits []hit, limit, before, after int) {
	used, last := 0, 0 // last is the last line shown
	for i, h := range hits {
		if i == limit {
			out.Truncated, out.TruncationReason = true, wire.TruncatedLimit
			return
		}
		n := after
		if i+1 < len(hits) {
			n = min(n, hits[i+1].line-h.line-1)
		}
		m := wire.FileMatch{Line: h.line, Preview: preview(text[h.start:h.end], h.at),
			Before: linesBefore(text, h.start, min(before, h.line-last-1)), After: linesAfter(text, h.end, n)}
		enc, _ := json.Marshal(m)
		if used+len(enc) > maxQueryBytes && i > 0 {
			out.Truncated, out.TruncationReason = true, wire.TruncatedBytes
			return
		}
		used, last = used+len(enc), h.line+len(m.After)
		out.Matches = append(out.Matches, m)
	}
}
