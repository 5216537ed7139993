package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

// Schemas that the checking patch tools share.
var (
	expectedFilesArg = schema.List("Files that must be as you know them.", schema.Object(
		schema.Req("path", pathArg("A file that the patch changes.", 1)),
		schema.Req("sha256", shaArg("sha256 of the file as you know it.")),
	), 0, files.MaxPatchFences)
	denySensitiveArg = schema.Bool("Refuse a patch that touches keys, credentials or .env files.")
)

var applyPatchChecked = Tool{
	Spec:  &files.ApplyPatchChecked,
	Title: "Apply a patch to known files",
	Description: "Apply a unified diff as apply_patch does, to files whose sha256 you know from read_files: where one is another, " +
		"nothing is changed.",
	Category: "files", Destructive: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("patch", patchArg),
		schema.Opt("expected_files", expectedFilesArg),
		schema.Opt("deny_sensitive_paths", denySensitiveArg),
	),
}
