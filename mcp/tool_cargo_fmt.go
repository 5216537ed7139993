package mcp

import (
	"webcodex/commands/validate"
	"webcodex/mcp/schema"
)

var cargoFmt = Tool{
	Spec:  &validate.CargoFmt,
	Title: "Format Rust code",
	Description: "Format Rust files (cargo fmt), or with check only say which places are not formatted: passed, their count, file and " +
		"line of each.",
	Category: "validation", Destructive: true, Idempotent: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("check", schema.Bool("Change nothing.")),
		schema.Opt("cwd", moduleCwdArg),
		schema.Opt("timeout_secs", schema.Int("Seconds; default 120, with check up to 3600.", validate.MinTimeoutSecs, validate.MaxTimeoutSecs)),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}
