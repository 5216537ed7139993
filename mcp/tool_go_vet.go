package mcp

import (
	"webcodex/commands/validate"
	"webcodex/mcp/schema"
)

var goVet = Tool{
	Spec:  &validate.GoVet,
	Title: "Vet Go code",
	Description: "Look for mistakes in Go code (go vet): passed, their count, file, line and message of each, build errors. passed is " +
		"null where it did not end. A long run becomes a Job: observe_jobs.",
	Category: "validation", OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("packages", schema.List("Package patterns; default ./...",
			schema.Str("., ./dir or ./dir/...", 1, validate.MaxPackageBytes).Bytes(validate.MaxPackageBytes).Match(validate.PackagePattern),
			0, validate.MaxPackages)),
		schema.Opt("cwd", moduleCwdArg),
		schema.Opt("timeout_secs", checkTimeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}
