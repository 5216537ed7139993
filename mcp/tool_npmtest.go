package mcp

import (
	"webcodex/commands/validate"
	"webcodex/mcp/schema"
)

var npmTest = Tool{
	Spec:  &validate.NPMTest,
	Title: "Run a package's tests",
	Description: "Run a Node package's test script (npm run test). Where it prints TAP, tests are counted and failed ones named; else the " +
		"exit status alone says whether it passed (parser none). A long run becomes a Job: observe_jobs.",
	Category: "validation", Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("script", schema.Str("Script of package.json; default test.", 1, validate.MaxScriptName).Match(validate.ScriptPattern)),
		schema.Opt("cwd", moduleCwdArg),
		schema.Opt("timeout_secs", testTimeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("require_tests", requireTestsArg),
		schema.Opt("min_tests", minTestsArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}
