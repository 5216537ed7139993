package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

var deleteProjectFiles = Tool{
	Spec:  &files.Delete,
	Title: "Delete files",
	Description: "Delete files (a symbolic link itself, never a directory). Files that are not there are listed as missing. " +
		"One refused path refuses all.",
	Category: "files", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("paths", schema.List("Files, exact names.", pathArg("Project-relative path.", 1), 1, files.MaxDeletePaths)),
	),
}
