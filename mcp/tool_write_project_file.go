package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

var writeProjectFile = Tool{
	Spec:  &files.Write,
	Title: "Write a file",
	Description: "Write a whole text file, byte for byte. An existing file needs overwrite and its expected_sha256 (or a prefix " +
		"of its content). For a change of some lines use edit_project_files.",
	Category: "files", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("path", pathArg("Project-relative path; missing directories are made.", 1)),
		schema.Req("content", schema.Str("Whole content.", 0, files.MaxWriteBytes).Bytes(files.MaxWriteBytes)),
		schema.Opt("overwrite", schema.Bool("Replace an existing file.")),
		schema.Opt("expected_sha256", shaArg("sha256 of the existing file.")),
		schema.Opt("expected_content_prefix", schema.Str("How the existing file begins.", 1, files.MaxPrefixChars)),
	),
}
