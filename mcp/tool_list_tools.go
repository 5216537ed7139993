package mcp

import (
	"context"
	"slices"
	"strings"

	"webcodex/commands/call"
	"webcodex/mcp/schema"
)

// Bounds of list_tools.
const (
	toolsLimit      = 64
	maxToolsLimit   = 128
	maxToolsQuery   = 64
	maxToolFeatures = 8
)

// toolFeatures are what list_tools can ask of a tool.
var toolFeatures = map[string]func(Tool) bool{
	"direct":      func(t Tool) bool { return t.Direct },
	"indirect":    func(t Tool) bool { return !t.Direct },
	"read_only":   func(t Tool) bool { return t.ReadOnly() },
	"destructive": func(t Tool) bool { return t.Annotations().Destructive },
	"idempotent":  func(t Tool) bool { return t.Annotations().Idempotent },
	"open_world":  func(t Tool) bool { return t.OpenWorld },
	"session_id":  func(t Tool) bool { _, takes := t.Input.Prop("session_id"); return takes },
}

type listToolsIn struct {
	Category    string   `json:"category"`
	Features    []string `json:"features"`
	Query       string   `json:"query"`
	SummaryOnly bool     `json:"summary_only"`
	Offset      *int     `json:"offset"`
	Limit       *int     `json:"limit"`
}

// listedTool is one short row.
type listedTool struct {
	Name     string       `json:"name"`
	Title    string       `json:"title"`
	Category string       `json:"category"`
	Effect   string       `json:"effect"`
	Scopes   []call.Scope `json:"scopes"`
	Direct   bool         `json:"direct"`
}

// toolCategory counts the tools of one category, whatever was filtered.
type toolCategory struct {
	Category string `json:"category"`
	Tools    int    `json:"tools"`
}

type listToolsOut struct {
	Tools      []listedTool   `json:"tools,omitempty"` // not with summary_only
	Names      []string       `json:"names"`
	Total      int            `json:"total_count"`
	Filtered   int            `json:"filtered_count"`
	Returned   int            `json:"returned_count"`
	Offset     int            `json:"offset"`
	Limit      int            `json:"limit"`
	Truncated  bool           `json:"truncated"`
	NextOffset *int           `json:"next_offset"`
	Categories []toolCategory `json:"categories"`
}

var listTools = Tool{
	Spec: &call.Spec{Name: "list_tools", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, Class: call.Observe,
		In: listToolsIn{}, Run: func(_ context.Context, c *call.Call) (call.Result, error) {
			in, err := call.Decode[listToolsIn](c)
			if err != nil {
				return call.Result{}, err
			}
			return call.Result{Output: listed(catalogue, in)}, nil
		}},
	Title: "List tools in short rows",
	Description: "List the tools of this server in short rows: name, category, effect, scopes, and whether it is in the tool list. " +
		"read_tool_manifest has their descriptions and input schemas.",
	Category: "runtime",
	Input: schema.Object(
		schema.Opt("category", schema.Enum("Only this category.", Categories...)),
		schema.Opt("features", schema.List("Only tools with all of these.",
			schema.Enum("indirect: reached by call_runtime_tool. session_id: takes one.", featureNames()...), 0, maxToolFeatures)),
		schema.Opt("query", schema.Str("Only tools whose name or description holds this, in any case.", 1, maxToolsQuery)),
		schema.Opt("summary_only", schema.Bool("Names alone.")),
		schema.Opt("offset", schema.Knob("next_offset of the page before.")),
		schema.Opt("limit", schema.Knob("1 to 128; default 64."))),
}

func featureNames() []string {
	names := make([]string, 0, len(toolFeatures))
	for name := range toolFeatures {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// listed is one page. Limit and offset are clamped and told (ruling 8).
func listed(all []Tool, in listToolsIn) listToolsOut {
	out := listToolsOut{Names: []string{}, Total: len(all), Limit: toolsLimit, Categories: []toolCategory{}}
	if in.Limit != nil {
		out.Limit = min(max(*in.Limit, 1), maxToolsLimit)
	}
	counts := map[string]int{}
	var picked []Tool
	for _, t := range all {
		counts[t.Category]++
		if in.takes(t) {
			picked = append(picked, t)
		}
	}
	for _, c := range Categories {
		if counts[c] > 0 {
			out.Categories = append(out.Categories, toolCategory{c, counts[c]})
		}
	}
	out.Filtered = len(picked)
	if in.Offset != nil {
		out.Offset = min(max(*in.Offset, 0), len(picked))
	}
	for _, t := range picked[out.Offset:min(out.Offset+out.Limit, len(picked))] {
		out.Names = append(out.Names, t.Spec.Name)
		if !in.SummaryOnly {
			out.Tools = append(out.Tools, listedTool{t.Spec.Name, t.Title, t.Category, t.Effect(), t.Spec.Scopes, t.Direct})
		}
	}
	out.Returned = len(out.Names)
	if next := out.Offset + out.Returned; next < len(picked) {
		out.Truncated, out.NextOffset = true, &next
	}
	return out
}

// takes reports whether a tool is asked for.
func (in listToolsIn) takes(t Tool) bool {
	if in.Category != "" && in.Category != t.Category {
		return false
	}
	for _, name := range in.Features {
		if has := toolFeatures[name]; has == nil || !has(t) {
			return false
		}
	}
	q := strings.ToLower(in.Query)
	return strings.Contains(t.Spec.Name, q) || strings.Contains(strings.ToLower(t.Description), q)
}
