package lsp

import (
	"context"
	"encoding/json"
	"slices"

	"webcodex/runner"
	"webcodex/runner/wire"
)

// diagnostics answers document_diagnostics for the file as it is now. What a server has published
// of an earlier version is no answer: then it is pending, and whether the file is clean not known.
func (s *Service) diagnostics(ctx context.Context, p *runner.Project, in wire.NavigateIn) (wire.DiagnosticsOut, error) {
	out := wire.DiagnosticsOut{Diagnostics: []wire.FileDiagnostic{}, Status: wire.DiagnosticsPending}
	r, done, err := s.about(ctx, p, in.Path)
	if err != nil {
		return out, err
	}
	defer done()
	out.Path = r.path
	found, current, err := r.findings()
	if err != nil {
		return out, err
	}
	slices.SortStableFunc(found, func(a, b diagnostic) int { return rank(a) - rank(b) })
	limit := limited(in.Limit, wire.DiagnosticsLimit, wire.MaxDiagnosticsOf)
	for _, d := range found {
		out.Total++
		switch severityName(d.Severity) {
		case "error":
			out.Errors++
		case "warning":
			out.Warnings++
		}
		one := wire.FileDiagnostic{Severity: severityName(d.Severity), Code: code(d.Code), Source: clip(d.Source, maxName), Message: clip(d.Message, maxText)}
		span, ok := r.lines.span(d.Range, r.caps.Encoding)
		one.Span = span
		switch {
		case !ok:
			out.Invalid++
		case len(out.Diagnostics) >= limit || !r.fits(one):
			out.Truncated = true
		default:
			out.Diagnostics = append(out.Diagnostics, one)
		}
	}
	out.Returned, out.Provider = len(out.Diagnostics), r.provenance()
	if current && !out.Provider.Loading {
		clean := out.Total == 0
		out.Status, out.Clean = wire.DiagnosticsCurrent, &clean
	}
	return out, nil
}

// findings asks the server, or waits for what it publishes of this version. current tells that they
// are of it.
func (r *request) findings() (found []diagnostic, current bool, err error) {
	uri := r.uri(r.path)
	if has(r.caps.Diagnostics) {
		var out pulled
		err := r.call("textDocument/diagnostic", map[string]any{"textDocument": documentID{uri}}, &out)
		return out.Items, err == nil, err
	}
	version := r.doc.version
	r.mu.Lock()
	if _, known := r.found[uri]; !known {
		r.found[uri] = published{}
	}
	r.mu.Unlock()
	current = r.until(r.ctx, publishWait, func() bool {
		v := r.found[uri].Version
		return v != nil && *v >= version
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found[uri].Diagnostics, current, nil
}

func rank(d diagnostic) int {
	if d.Severity <= 0 {
		return 1
	}
	return d.Severity
}

// code is a diagnostic's code, which is a number or a text.
func code(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return clip(text, maxName)
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return clip(n.String(), maxName)
	}
	return ""
}
