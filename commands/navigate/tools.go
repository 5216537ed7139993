package navigate

import (
	"context"

	"webcodex/commands/call"
	"webcodex/runner/wire"
)

func status(ctx context.Context, c *call.Call) (call.Result, error) {
	out, err := ask[wire.LSPStatusOut](ctx, c, wire.OpLSPStatus, struct{}{})
	return call.Result{Output: out}, err
}

func documentSymbols(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[FileIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, err := ask[wire.SymbolsOut](ctx, c, wire.OpDocumentSymbols, wire.NavigateIn{Path: in.Path, Limit: in.Limit})
	if err != nil {
		return call.Result{}, err
	}
	return observed(out, out.Counts, out.Path), nil
}

func diagnostics(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[FileIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, err := ask[wire.DiagnosticsOut](ctx, c, wire.OpDiagnostics, wire.NavigateIn{Path: in.Path, Limit: in.Limit})
	if err != nil {
		return call.Result{}, err
	}
	return observed(out, out.Counts, out.Path), nil
}

func workspaceSymbols(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[QueryIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, err := ask[wire.SymbolsOut](ctx, c, wire.OpWorkspaceSymbols, wire.NavigateIn{Query: in.Query, Limit: in.Limit})
	if err != nil {
		return call.Result{}, err
	}
	return observed(out, out.Counts), nil
}

func definition(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[DefinitionIn](c)
	if err != nil {
		return call.Result{}, err
	}
	return places(ctx, c, wire.OpDefinition, wire.NavigateIn{Path: in.Path, Line: in.Line, Column: in.Column, Limit: in.Limit})
}

func references(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ReferencesIn](c)
	if err != nil {
		return call.Result{}, err
	}
	return places(ctx, c, wire.OpReferences, wire.NavigateIn{Path: in.Path, Line: in.Line, Column: in.Column, Limit: in.Limit,
		IncludeDeclaration: in.IncludeDeclaration == nil || *in.IncludeDeclaration})
}

func places(ctx context.Context, c *call.Call, op wire.Op, in wire.NavigateIn) (call.Result, error) {
	out, err := ask[wire.PlacesOut](ctx, c, op, in)
	if err != nil {
		return call.Result{}, err
	}
	paths := []string{in.Path}
	for _, l := range out.Locations {
		paths = append(paths, l.Path)
	}
	return observed(out, out.Counts, paths...), nil
}

func hover(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[PlaceIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, err := ask[wire.HoverOut](ctx, c, wire.OpHover, wire.NavigateIn{Path: in.Path, Line: in.Line, Column: in.Column})
	if err != nil {
		return call.Result{}, err
	}
	n := wire.Counts{}
	if out.Hover != nil {
		n.Returned, n.Truncated = 1, out.Hover.Truncated
	}
	return observed(out, n, out.Path), nil
}

func callHierarchy(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[HierarchyIn](c)
	if err != nil {
		return call.Result{}, err
	}
	direction := in.Direction
	if direction == "" {
		direction = wire.CallsIncoming
	}
	out, err := ask[wire.HierarchyOut](ctx, c, wire.OpCallHierarchy, wire.NavigateIn{Path: in.Path, Line: in.Line, Column: in.Column,
		Limit: in.Limit, Direction: direction, Depth: in.Depth})
	if err != nil {
		return call.Result{}, err
	}
	paths := []string{in.Path}
	for _, e := range out.Edges {
		paths = append(paths, e.From.Path, e.To.Path)
	}
	return observed(out, out.Counts, paths...), nil
}
