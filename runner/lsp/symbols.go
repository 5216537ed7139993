package lsp

import (
	"context"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// documentSymbols answers document_symbols.
func (s *Service) documentSymbols(ctx context.Context, p *runner.Project, in wire.NavigateIn) (wire.SymbolsOut, error) {
	out := wire.SymbolsOut{Symbols: []wire.Symbol{}}
	r, done, err := s.about(ctx, p, in.Path)
	if err != nil {
		return out, err
	}
	defer done()
	if err := r.can(r.caps.Symbols, "that"); err != nil {
		return out, err
	}
	var found []symbol
	if err := r.call("textDocument/documentSymbol", map[string]any{"textDocument": documentID{r.uri(r.path)}}, &found); err != nil {
		return out, err
	}
	out.Path = r.path
	r.addSymbols(&out, found, "", 0, limited(in.Limit, wire.SymbolsLimit, wire.MaxSymbols))
	out.Returned, out.Providers = len(out.Symbols), []wire.Provider{r.provenance()}
	return out, nil
}

// addSymbols flattens a tree of declarations, what declares before what is declared.
func (r *request) addSymbols(out *wire.SymbolsOut, list []symbol, container string, depth, limit int) {
	for _, sym := range list {
		out.Total++
		name := clip(sym.Name, maxName)
		one := wire.Symbol{Name: name, Kind: kindName(sym.Kind), Detail: clip(sym.Detail, maxName), Container: container, Depth: depth}
		if sym.Container != "" {
			one.Container = clip(sym.Container, maxName)
		}
		at := sym.SelectionRange
		if at == nil && sym.Location != nil {
			at = &sym.Location.Range
		}
		if at == nil {
			at = sym.Range
		}
		ok := at != nil
		if ok {
			one.Span, ok = r.lines.span(*at, r.caps.Encoding)
		}
		switch {
		case !ok:
			out.Invalid++
		case len(out.Symbols) >= limit || !r.fits(one):
			out.Truncated = true
		default:
			out.Symbols = append(out.Symbols, one)
		}
		r.addSymbols(out, sym.Children, name, depth+1, limit)
	}
}

// workspaceSymbols answers workspace_symbols: every server whose language the Project has is asked.
func (s *Service) workspaceSymbols(ctx context.Context, p *runner.Project, in wire.NavigateIn) (wire.SymbolsOut, error) {
	out := wire.SymbolsOut{Symbols: []wire.Symbol{}, Providers: []wire.Provider{}}
	if n := utf8.RuneCountInString(in.Query); n < 1 || n > wire.MaxSymbolQueryChars {
		return out, fault.New(fault.InvalidArguments, "query must have 1 to %d characters", wire.MaxSymbolQueryChars).WithField("query")
	}
	counts, _, err := detect(ctx, p)
	if err != nil {
		return out, err
	}
	limit := limited(in.Limit, wire.FoundSymbolsLimit, wire.MaxFoundSymbols)
	var first error
	shown := 0
	for _, k := range kinds {
		if counts[k] == 0 || k.find() == "" {
			continue
		}
		provider, err := s.find(ctx, p, k, in.Query, limit, &out, &shown)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		out.Providers = append(out.Providers, provider)
	}
	out.Returned = len(out.Symbols)
	switch {
	case len(out.Providers) > 0:
		return out, nil
	case first != nil:
		return out, first
	}
	return out, fault.New(fault.LSPServerUnavailable, "no language server for this Project is installed where the Runner runs").
		WithNext("get_lsp_status lists them; search_project_texts needs none")
}

func (s *Service) find(ctx context.Context, p *runner.Project, k *kind, query string, limit int, out *wire.SymbolsOut, shown *int) (wire.Provider, error) {
	pr, _, done, err := s.current(ctx, p, k, "")
	if err != nil {
		return wire.Provider{}, err
	}
	defer done()
	r := &request{provider: pr, ctx: ctx, texts: map[string]lines{}, shown: *shown}
	if err := r.can(r.caps.Workspace, "that"); err != nil {
		return wire.Provider{}, err
	}
	var found []symbol
	if err := r.call("workspace/symbol", map[string]any{"query": query}, &found); err != nil {
		return wire.Provider{}, err
	}
	for _, sym := range found {
		out.Total++
		if sym.Location == nil {
			out.Invalid++
			continue
		}
		uri, at := sym.Location.at()
		path, _, span, external, invalid := r.locate(uri, at)
		switch one := (wire.Symbol{Name: clip(sym.Name, maxName), Kind: kindName(sym.Kind), Container: clip(sym.Container, maxName),
			Path: path, Span: span}); {
		case external:
			out.Omitted++
		case invalid:
			out.Invalid++
		case len(out.Symbols) >= limit || !r.fits(one):
			out.Truncated = true
		default:
			out.Symbols = append(out.Symbols, one)
		}
	}
	*shown = r.shown
	return r.provenance(), nil
}
