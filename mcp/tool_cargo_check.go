package mcp

import (
	"webcodex/commands/validate"
	"webcodex/mcp/schema"
)

var cargoCheck = Tool{
	Spec:  &validate.CargoCheck,
	Title: "Check Rust code",
	Description: "Compile Rust code without running it (cargo check): passed, counts of errors and warnings, compile errors with file " +
		"and line. passed is null where it did not end. A long run becomes a Job: observe_jobs.",
	Category: "validation", OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("package", schema.Str("Only this package.", 1, validate.MaxPackageBytes).Bytes(validate.MaxPackageBytes)),
		schema.Opt("features", schema.List("",
			schema.Str("", 1, validate.MaxFeatureBytes), 0, validate.MaxFeatures)),
		schema.Opt("all_features", schema.Bool("")),
		schema.Opt("no_default_features", schema.Bool("")),
		schema.Opt("all_targets", schema.Bool("Also tests, examples and benches; default true.")),
		schema.Opt("cwd", moduleCwdArg),
		schema.Opt("timeout_secs", checkTimeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}

// checkTimeoutArg is of what compiles and runs nothing.
var checkTimeoutArg = schema.Int("Seconds; default 600.", validate.MinTimeoutSecs, validate.MaxTimeoutSecs)
