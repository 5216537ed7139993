package mcp

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

// callRuntimeToolIn are the arguments of call_runtime_tool.
type callRuntimeToolIn struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// callRuntimeTool reaches the tools that tools/list leaves out. The edge resolves it before
// the kernel: the target runs, is checked and stands in the evidence under its own name. The
// hints are the worst case over all targets.
var callRuntimeTool = Tool{
	Spec: &call.Spec{Name: "call_runtime_tool", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime,
		Class: call.Execute, In: callRuntimeToolIn{},
		Run: func(context.Context, *call.Call) (call.Result, error) {
			return call.Result{}, fault.New(fault.InvalidArguments, "call_runtime_tool is resolved where it arrives").WithField("tool")
		}},
	Title: "Call any tool",
	Description: "Call a tool that is not in this list, by name, with its own arguments and scopes; read_tool_manifest lists names and " +
		"input schemas.",
	Category: "runtime", Direct: true, Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("tool", schema.Str("Name of the tool, as in read_tool_manifest.", 1, 64)),
		schema.Opt("arguments", &schema.Schema{Type: "object", Free: true, Description: "Arguments of that tool, as an object."})),
}
