package mcp

import (
	"webcodex/commands/validate"
	"webcodex/mcp/schema"
)

var cargoTest = Tool{
	Spec:  &validate.CargoTest,
	Title: "Run Rust tests",
	Description: "Run Rust tests (cargo test): passed, counts, failed tests with file, line and message, compile errors. passed is " +
		"null where it did not end. A long run becomes a Job: observe_jobs.",
	Category: "validation", Direct: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("package", schema.Str("Only this package.", 1, validate.MaxPackageBytes).Bytes(validate.MaxPackageBytes)),
		schema.Opt("filter", schema.Str("Only tests whose name holds this.", 1, validate.MaxFilterBytes).Bytes(validate.MaxFilterBytes)),
		schema.Opt("features", schema.List("",
			schema.Str("", 1, validate.MaxFeatureBytes), 0, validate.MaxFeatures)),
		schema.Opt("all_features", schema.Bool("")),
		schema.Opt("no_default_features", schema.Bool("")),
		schema.Opt("all_targets", schema.Bool("Also examples and benches.")),
		schema.Opt("no_run", schema.Bool("Only compile.")),
		schema.Opt("cwd", moduleCwdArg),
		schema.Opt("timeout_secs", testTimeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("require_tests", requireTestsArg),
		schema.Opt("min_tests", minTestsArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}
