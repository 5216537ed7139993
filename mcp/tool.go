package mcp

import (
	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/mcp/schema"
)

// Tool is one model-facing tool: what the pipeline needs (Spec) and what a model needs to
// choose and call it. One tool, one file, one line in tools.go.
type Tool struct {
	Spec *call.Spec
	// Title is for people, shown where it says more than the name; Description leads with the key words and stays under 1 KB.
	Title       string
	Description string
	// Category groups tools in the manifest (Categories).
	Category string
	// Direct tools stand in tools/list; the others are reached by call_runtime_tool.
	Direct bool
	Input  *schema.Schema
	// Annotations besides readOnlyHint, which follows from the Spec's class (ruling 7).
	Destructive, Idempotent, OpenWorld bool
}

// ReadOnly is the readOnlyHint.
func (t Tool) ReadOnly() bool { return t.Spec.Class == call.Observe }

// Schemas of members that most tools share.
var (
	projectArg = schema.Str("", 1, 512) // instructions and list_projects say where it is from
	sessionArg = schema.Str("Records this call.", 1, 128)
	// readerArg is the same of tools that only read: each byte is in every list (ruling 4).
	readerArg  = schema.Str("", 1, 128)
	purposeArg = schema.Enum("", call.Purposes...)
	// expectationArg changes how the end is counted, never the result (EXE-29, EXE-33).
	expectationArg = schema.Enum("Default success.", evidence.Expectations...)
)
