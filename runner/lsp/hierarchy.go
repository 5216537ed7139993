package lsp

import (
	"context"
	"encoding/json"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// callHierarchy answers call_hierarchy, level by level.
func (s *Service) callHierarchy(ctx context.Context, p *runner.Project, in wire.NavigateIn) (wire.HierarchyOut, error) {
	out := wire.HierarchyOut{Roots: []wire.Function{}, Edges: []wire.CallEdge{}}
	if in.Direction != wire.CallsIncoming && in.Direction != wire.CallsOutgoing && in.Direction != wire.CallsBoth {
		return out, fault.New(fault.InvalidArguments, "direction is incoming, outgoing or both").WithField("direction")
	}
	r, done, err := s.about(ctx, p, in.Path)
	if err != nil {
		return out, err
	}
	defer done()
	if !has(r.caps.Hierarchy) {
		return out, fault.New(fault.CallHierarchyUnsupported, "%s does not follow calls", r.kind.name).WithNext("use find_references")
	}
	where, err := r.at(in.Line, in.Column)
	if err != nil {
		return out, err
	}
	var roots []callItem
	if err := r.call("textDocument/prepareCallHierarchy", where, &roots); err != nil {
		return out, err
	}
	for _, root := range roots {
		f, _, external, invalid := r.function(root)
		switch {
		case external:
			out.Omitted++
		case invalid:
			out.Invalid++
		default:
			out.Roots = append(out.Roots, f)
		}
	}
	g := &climb{request: r, out: &out, limit: limited(in.Limit, wire.HierarchyLimit, wire.MaxHierarchy)}
	for _, direction := range []string{wire.CallsIncoming, wire.CallsOutgoing} {
		if in.Direction == direction || in.Direction == wire.CallsBoth {
			if err := g.follow(direction, roots, limited(in.Depth, 1, wire.MaxHierarchyDepth)); err != nil {
				return out, err
			}
		}
	}
	out.Returned, out.Provider = len(out.Edges), r.provenance()
	return out, nil
}

// function is an item in our terms, with the lines of its file.
func (r *request) function(c callItem) (f wire.Function, text lines, external, invalid bool) {
	path, text, span, external, invalid := r.locate(c.URI, c.SelectionRange)
	return wire.Function{Name: clip(c.Name, maxName), Kind: kindName(c.Kind), Detail: clip(c.Detail, maxName), Path: path, Span: span},
		text, external, invalid
}

type climb struct {
	*request
	out   *wire.HierarchyOut
	limit int
}

// follow asks level by level; a function is asked about once.
func (g *climb) follow(direction string, level []callItem, depth int) error {
	method, asked := "callHierarchy/incomingCalls", map[string]bool{}
	if direction == wire.CallsOutgoing {
		method = "callHierarchy/outgoingCalls"
	}
	for d := 1; d <= depth && len(level) > 0; d++ {
		var next []callItem
		for _, item := range level {
			key, _ := json.Marshal([]any{item.URI, item.SelectionRange})
			if asked[string(key)] || len(g.out.Edges) >= g.limit {
				continue
			}
			asked[string(key)] = true
			var edges []callEdge
			if err := g.call(method, map[string]any{"item": item.raw}, &edges); err != nil {
				return err
			}
			for _, e := range edges {
				other := e.From
				if direction == wire.CallsOutgoing {
					other = e.To
				}
				if other == nil {
					continue
				}
				if g.add(direction, item, *other, e.Ranges, d) {
					next = append(next, *other)
				}
			}
		}
		level = next
	}
	return nil
}

// add shows one edge; it reports whether the other end can be followed.
func (g *climb) add(direction string, item, other callItem, at []textRange, depth int) bool {
	g.out.Total++
	from, to := other, item
	if direction == wire.CallsOutgoing {
		from, to = item, other
	}
	f, text, external, invalid := g.function(from)
	t, _, external2, invalid2 := g.function(to)
	switch {
	case external || external2:
		g.out.Omitted++
		return false
	case invalid || invalid2:
		g.out.Invalid++
		return false
	}
	edge := wire.CallEdge{From: f, To: t, Depth: depth, Calls: []wire.Span{}}
	for _, a := range at {
		if span, ok := text.span(a, g.caps.Encoding); ok && len(edge.Calls) < wire.MaxCallSpans {
			edge.Calls = append(edge.Calls, span)
		}
	}
	if len(g.out.Edges) >= g.limit || !g.fits(edge) {
		g.out.Truncated = true
		return false
	}
	g.out.Edges = append(g.out.Edges, edge)
	return true
}
