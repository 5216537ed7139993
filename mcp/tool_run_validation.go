package mcp

import (
	"webcodex/commands/validate"
	"webcodex/mcp/schema"
)

var runValidation = Tool{
	Spec:  &validate.RunValidation,
	Title: "Run a validation",
	Description: "Run a command that validates the Project and read what it says about tests: passed, counts, failed tests. The exit " +
		"status decides, the parser explains. For Go, Rust, npm and Python tests their own tools say more. A long run becomes a Job: " +
		"observe_jobs.",
	Category: "validation", Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("executable", schema.Str("Program name or path.", 1, validate.MaxExecutable).Bytes(validate.MaxExecutable)),
		schema.Opt("args", argsArg("As they are: no quoting, no globbing.")),
		schema.Req("parser", schema.Enum("What it prints: TAP, a JUnit report, go test -json, cargo test --message-format=json, or nothing to be read.",
			validate.RunParsers...)),
		schema.Opt("report", schema.Str("junit: the file that it writes its report to, relative to cwd; default: its output.", 1, validate.MaxReportBytes).Bytes(validate.MaxReportBytes)),
		schema.Opt("cwd", moduleCwdArg),
		schema.Opt("timeout_secs", checkTimeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("require_tests", requireTestsArg),
		schema.Opt("min_tests", minTestsArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}
