package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var readJobLog = Tool{
	Spec:  &run.ReadJobLog,
	Title: "Read a Job's log",
	Description: "Output that the Runner keeps of a Job (the last 256 KiB of each stream): the last lines of both, or a page of one from a " +
		"byte offset. bytes and dropped_bytes are exact; log gone: only how it ended is known.",
	Category: "execution", Idempotent: true,
	Input: schema.Object(
		schema.Req("job_id", schema.Str("As the run gave it.", 1, 64)),
		schema.Opt("stream", schema.Enum("Default both.", run.Streams...)),
		schema.Opt("offset", schema.Int("Byte to begin at, from next_offset; needs stream.", 0, 1<<53)),
		schema.Opt("max_bytes", schema.Int("Of a stream; default 12000.", 4, run.MaxLogBytes)),
		schema.Opt("tail_lines", schema.Knob("Without offset, up to 500; default 200.")),
	),
}
