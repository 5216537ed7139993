// Package mcp is the edge that hosts talk to: the tool catalogue with its schemas, the
// protocol eras behind one dispatcher, HTTP and stdio. Only it imports the MCP SDK.
package mcp
