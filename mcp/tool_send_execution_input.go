package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var sendExecutionInput = Tool{
	Spec:  &run.SendInput,
	Title: "Answer a running program",
	Description: "Type on the terminal of a run that was started with interactive: true. A line needs its line end; control keys are " +
		"their characters. accepted_bytes tells what the terminal took. Refused for a run without a terminal " +
		"(execution_not_interactive) or that has ended (execution_ended).",
	Category: "execution", Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("execution_id", schema.Str("execution_id as the run gave it.", 1, 64)),
		schema.Opt("text", schema.Str("What to type, as it is.", 0, run.MaxInputBytes).Bytes(run.MaxInputBytes)),
		schema.Opt("close", schema.Bool("End the input after the text (Ctrl-D).")),
	),
}
