package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// definition answers goto_definition, references find_references.
func (s *Service) definition(ctx context.Context, p *runner.Project, in wire.NavigateIn) (wire.PlacesOut, error) {
	return s.places(ctx, p, in, "textDocument/definition", limited(in.Limit, wire.DefinitionsLimit, wire.MaxDefinitions))
}

func (s *Service) references(ctx context.Context, p *runner.Project, in wire.NavigateIn) (wire.PlacesOut, error) {
	return s.places(ctx, p, in, "textDocument/references", limited(in.Limit, wire.ReferencesLimit, wire.MaxReferences))
}

func (s *Service) places(ctx context.Context, p *runner.Project, in wire.NavigateIn, method string, limit int) (wire.PlacesOut, error) {
	out := wire.PlacesOut{Locations: []wire.FoundPlace{}}
	r, done, err := s.about(ctx, p, in.Path)
	if err != nil {
		return out, err
	}
	defer done()
	where, err := r.at(in.Line, in.Column)
	if err != nil {
		return out, err
	}
	capability, ask := r.caps.Definition, any(where)
	if method == "textDocument/references" {
		capability = r.caps.References
		ask = struct {
			place
			Context map[string]bool `json:"context"`
		}{where, map[string]bool{"includeDeclaration": in.IncludeDeclaration}}
	}
	if err := r.can(capability, "that"); err != nil {
		return out, err
	}
	var raw json.RawMessage
	if err := r.call(method, ask, &raw); err != nil {
		return out, err
	}
	found, err := locations(raw)
	if err != nil {
		return out, fault.Wrap(err, fault.LSPProtocolError, "%s gave an answer that cannot be read", r.kind.name)
	}
	out.Total = len(found)
	for _, l := range found {
		uri, at := l.at()
		path, text, span, external, invalid := r.locate(uri, at)
		switch one := (wire.FoundPlace{Path: path, Span: span, Preview: text.preview(span.Line)}); {
		case external:
			out.Omitted++
		case invalid:
			out.Invalid++
		case len(out.Locations) >= limit || !r.fits(one):
			out.Truncated = true
		default:
			out.Locations = append(out.Locations, one)
		}
	}
	out.Returned, out.Provider = len(out.Locations), r.provenance()
	return out, nil
}

// locations reads one location, a list of them, or null.
func locations(raw json.RawMessage) ([]location, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] == '[':
		var all []location
		return all, json.Unmarshal(raw, &all)
	}
	var one location
	err := json.Unmarshal(raw, &one)
	return []location{one}, err
}

// hover answers hover.
func (s *Service) hover(ctx context.Context, p *runner.Project, in wire.NavigateIn) (wire.HoverOut, error) {
	r, done, err := s.about(ctx, p, in.Path)
	if err != nil {
		return wire.HoverOut{}, err
	}
	defer done()
	where, err := r.at(in.Line, in.Column)
	if err != nil {
		return wire.HoverOut{}, err
	}
	if err := r.can(r.caps.Hover, "that"); err != nil {
		return wire.HoverOut{}, err
	}
	var h *hover
	if err := r.call("textDocument/hover", where, &h); err != nil {
		return wire.HoverOut{}, err
	}
	out := wire.HoverOut{Path: r.path, Provider: r.provenance()}
	if h == nil {
		return out, nil
	}
	kind, value := markup(h.Contents)
	if value == "" {
		return out, nil
	}
	out.Hover = &wire.HoverText{Kind: kind}
	out.Hover.Value, out.Hover.Truncated = cut(clip(value, wire.MaxHoverBytes), wire.MaxHoverBytes)
	if h.Range != nil {
		if span, ok := r.lines.span(*h.Range, r.caps.Encoding); ok {
			out.Hover.Span = &span
		}
	}
	return out, nil
}

// cut ends a text at a code point within a bound of bytes.
func cut(s string, most int) (string, bool) {
	if len(s) <= most {
		return s, false
	}
	for most > 0 && s[most]&0xc0 == 0x80 {
		most--
	}
	return s[:most], true
}

// markup reads the three forms of a hover's contents.
func markup(raw json.RawMessage) (kind, value string) {
	var one struct {
		Kind     string `json:"kind"`
		Language string `json:"language"`
		Value    string `json:"value"`
	}
	var text string
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return "markdown", text
	case json.Unmarshal(raw, &list) == nil:
		var parts []string
		for _, part := range list {
			if _, v := markup(part); v != "" {
				parts = append(parts, v)
			}
		}
		return "markdown", strings.Join(parts, "\n\n")
	case json.Unmarshal(raw, &one) != nil:
		return "", ""
	case one.Language != "":
		return "markdown", "```" + one.Language + "\n" + one.Value + "\n```"
	case one.Kind == "plaintext":
		return "plaintext", one.Value
	}
	return "markdown", one.Value
}
