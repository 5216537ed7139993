package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

// Bounds of read_tool_manifest.
const (
	manifestLimit    = 20
	maxManifestLimit = 50
	// maxManifestBytes keeps one page within what a host shows (tools.md: 40,000 characters).
	maxManifestBytes = 38_000
)

type manifestIn struct {
	Tools    []string `json:"tools"`
	Category string   `json:"category"`
	Offset   *int     `json:"offset"`
	Limit    *int     `json:"limit"`
}

// manifestTool is one tool as the manifest shows it; scopes are fixed in its definition
// (AUTH-12).
type manifestTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Category    string         `json:"category"`
	Direct      bool           `json:"direct"`
	Scopes      []call.Scope   `json:"scopes"`
	Conditional []call.Scope   `json:"conditional_scopes,omitempty"` // some calls need them too
	Effect      string         `json:"effect"`
	Annotations Annotations    `json:"annotations"`
	InputSchema *schema.Schema `json:"input_schema"`
}

type manifestOut struct {
	Tools      []manifestTool `json:"tools"`
	Total      int            `json:"total"`
	Returned   int            `json:"returned"`
	Offset     int            `json:"offset"`
	Limit      int            `json:"limit"`
	NextOffset *int           `json:"next_offset"`
	// Envelope explains what any call of the modern era may carry beside its arguments; it is on
	// the first page, and in no other era.
	Envelope *schema.Schema `json:"invocation_envelope,omitempty"`
}

var readToolManifest = Tool{
	Spec: &call.Spec{Name: "read_tool_manifest", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime,
		Class: call.Observe, In: manifestIn{}, Run: runManifest},
	Title: "Read the tool manifest",
	Description: "List every tool of this server: name, description, scopes, effect, hints and input schema. Call what is not in the " +
		"tool list with call_runtime_tool.",
	Category: "runtime", Direct: true,
	Input: schema.Object(
		schema.Opt("tools", schema.List("Only these tools.", schema.Str("", 1, 64), 0, 50)),
		schema.Opt("category", schema.Enum("Only this category.", Categories...)),
		schema.Opt("offset", schema.Knob("next_offset of the page before.")),
		schema.Opt("limit", schema.Knob("1 to 50; default 20."))),
}

// Categories of tools, in the order of the manifest.
var Categories = []string{"workflow", "board", "files", "git", "execution", "validation", "navigation", "runtime"}

func runManifest(_ context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[manifestIn](c)
	if err != nil {
		return call.Result{}, err
	}
	env := explained
	if c.Envelope().Field != envelopeRecord {
		env = nil
	}
	out, err := manifest(catalogue, in, env)
	return call.Result{Output: out}, err
}

// manifest is one page. Limit and offset are clamped and told (ruling 8).
func manifest(all []Tool, in manifestIn, env *schema.Schema) (manifestOut, error) {
	limit := manifestLimit
	if in.Limit != nil {
		limit = min(max(*in.Limit, 1), maxManifestLimit)
	}
	picked, err := pick(all, in)
	if err != nil {
		return manifestOut{}, err
	}
	offset := 0
	if in.Offset != nil {
		offset = min(max(*in.Offset, 0), len(picked))
	}
	out := manifestOut{Tools: []manifestTool{}, Total: len(picked), Offset: offset, Limit: limit}
	used := 0
	if env != nil && offset == 0 {
		enc, err := json.Marshal(env)
		if err != nil {
			return manifestOut{}, fault.Wrap(err, fault.Internal, "the manifest could not be encoded")
		}
		out.Envelope, used = env, len(enc)
	}
	for _, t := range picked[offset:min(offset+limit, len(picked))] {
		m := manifestTool{t.Spec.Name, t.Description, t.Category, t.Direct, t.Spec.Scopes, t.Spec.Conditional, t.Effect(), t.Annotations(), t.Input}
		enc, err := json.Marshal(m)
		if err != nil {
			return manifestOut{}, fault.Wrap(err, fault.Internal, "the manifest could not be encoded")
		}
		if used += len(enc) + 1; used > maxManifestBytes && len(out.Tools) > 0 {
			break
		}
		out.Tools = append(out.Tools, m)
	}
	out.Returned = len(out.Tools)
	if next := offset + out.Returned; next < len(picked) {
		out.NextOffset = &next
	}
	return out, nil
}

func pick(all []Tool, in manifestIn) ([]Tool, error) {
	for _, name := range in.Tools {
		if _, ok := find(all, name); !ok {
			return nil, fault.New(fault.UnknownTool, "one of the named tools does not exist").WithField("tools").
				WithNext("call read_tool_manifest without tools to see all")
		}
	}
	var out []Tool
	for _, t := range all {
		if (len(in.Tools) == 0 || slices.Contains(in.Tools, t.Spec.Name)) && (in.Category == "" || in.Category == t.Category) {
			out = append(out, t)
		}
	}
	return out, nil
}
