package mcp

import (
	"webcodex/commands/runtime"
	"webcodex/mcp/schema"
)

var getRuntimeStatus = Tool{
	Spec:  runtime.GetRuntimeStatus,
	Title: "Get runtime status",
	Description: "Status of the WebCodex server: version, uptime, durability of the log, room left, connected Runners, counts, and " +
		"whether new work is accepted.",
	Category: "runtime", Direct: true,
	Input: schema.Object(),
}
