package mcp

import (
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// inEra gives the result of a tool the member that the modern revision requires; its clients
// refuse a result without. The SDK sets it behind its own handlers, where an answer of
// callTools never comes, and decoding is the only way to it from outside.
func inEra(req sdk.Request, res *sdk.CallToolResult) *sdk.CallToolResult {
	c, ok := req.(*sdk.CallToolRequest)
	if !ok || c.ProtocolVersion() < Modern {
		return res
	}
	var out sdk.CallToolResult
	if err := json.Unmarshal([]byte(`{"content":[],"resultType":"complete"}`), &out); err != nil {
		return res
	}
	out.Content, out.StructuredContent, out.IsError, out.Meta = res.Content, res.StructuredContent, res.IsError, res.Meta
	return &out
}
