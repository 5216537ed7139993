package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

var validatePatch = Tool{
	Spec:  &files.ValidatePatch,
	Title: "Check a patch",
	Description: "Check a unified diff without changing anything: valid (it can be read and may be applied here), applies (it fits the " +
		"files as they are), else the reason, the line of the patch and each hunk that does not fit.",
	Category: "files",
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("patch", patchArg),
		schema.Opt("expected_files", expectedFilesArg),
		schema.Opt("deny_sensitive_paths", denySensitiveArg),
	),
}
