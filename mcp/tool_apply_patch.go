package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

var patchArg = schema.Str("Unified diff, git's form or plain; paths relative to the Project.", 1, files.MaxPatchBytes).Bytes(files.MaxPatchBytes)

var applyPatch = Tool{
	Spec:  &files.ApplyPatch,
	Title: "Apply a patch",
	Description: "Apply a unified diff (git apply): edits, new, deleted, renamed and copied files, modes. All or nothing; no fuzz: every " +
		"old line must be there. A hunk that stands elsewhere is applied where it stands once, and told in moved_hunks. Binary " +
		"patches and links are refused. On edit_conflict nothing was changed, and conflicts names each hunk.",
	Category: "files", Destructive: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("patch", patchArg),
	),
}
