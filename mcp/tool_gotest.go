package mcp

import (
	"webcodex/commands/validate"
	"webcodex/mcp/schema"
)

// Schemas that the validation tools share.
var (
	moduleCwdArg    = schema.Str("Default: the root.", 1, validate.MaxCwdBytes).Bytes(validate.MaxCwdBytes)
	testTimeoutArg  = schema.Int("Default 1800.", validate.MinTimeoutSecs, validate.MaxTimeoutSecs)
	requireTestsArg = schema.Bool("Fail where no test ran.")
	minTestsArg     = schema.Int("Fail where fewer ran.", 1, validate.MaxMinTests)
)

var goTest = Tool{
	Spec:  &validate.GoTest,
	Title: "Run Go tests",
	Description: "Run Go tests (go test): passed, counts, failed tests with file, line and message, build errors. passed is null " +
		"where it did not end. A long run becomes a Job: observe_jobs. stdout leaves passing tests out.",
	Category: "validation", Direct: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("packages", schema.List("Package patterns; default ./...",
			schema.Str("., ./dir or ./dir/...", 1, validate.MaxPackageBytes).Bytes(validate.MaxPackageBytes).Match(validate.PackagePattern),
			0, validate.MaxPackages)),
		schema.Opt("cwd", moduleCwdArg),
		schema.Opt("timeout_secs", testTimeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("require_tests", requireTestsArg),
		schema.Opt("min_tests", minTestsArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}
