package mcp

import (
	"webcodex/commands/validate"
	"webcodex/mcp/schema"
)

var pytest = Tool{
	Spec:  &validate.Pytest,
	Title: "Run Python tests",
	Description: "Run Python tests (pytest): passed, counts, failed tests with file, line and message. passed is null where it did not " +
		"end, or collected no test. A long run becomes a Job: observe_jobs.",
	Category: "validation", Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("paths", schema.List("Files, directories or file::test, relative to cwd; default: what pytest finds.",
			pathArg("", 1), 0, validate.MaxTestPaths)),
		schema.Opt("keyword", schema.Str("Only tests that this expression matches (-k).", 1, validate.MaxFilterBytes).Bytes(validate.MaxFilterBytes)),
		schema.Opt("cwd", moduleCwdArg),
		schema.Opt("timeout_secs", testTimeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("require_tests", requireTestsArg),
		schema.Opt("min_tests", minTestsArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}
