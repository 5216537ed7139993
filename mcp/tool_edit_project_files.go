package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

func shaArg(desc string) *schema.Schema {
	return schema.Str(desc, 64, 64).Match(`^[0-9a-fA-F]{64}$`)
}

func textArg(desc string, least int) *schema.Schema {
	return schema.Str(desc, least, files.MaxEditText).Bytes(files.MaxEditText)
}

var editProjectFiles = Tool{
	Spec:  &files.Edit,
	Title: "Edit project files",
	Description: "Edit, create, delete and rename files, all or nothing. Edits find old_text exactly (it must match once, or name the " +
		"occurrence) in the file as it was before the call; all edits of a file belong into one change. Pass the sha256 from " +
		"read_files to be sure of what you edit. On edit_conflict nothing was changed.",
	Category: "files", Direct: true, Destructive: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("changes", schema.List("One entry a file.", schema.Object(
			schema.Req("kind", schema.Enum("edit: path, edits. create: path, content. delete: path, expected_sha256. "+
				"rename: path, to_path, expected_sha256.", files.ChangeKinds...)),
			schema.Req("path", pathArg("Project-relative path.", 1)),
			schema.Opt("to_path", pathArg("New path (rename).", 1)),
			schema.Opt("expected_sha256", shaArg("sha256 of the file as you know it.")),
			schema.Opt("edits", schema.List("Text edits (edit).", schema.Object(
				schema.Req("kind", schema.Enum("What to do with old_text.", files.EditKinds...)),
				schema.Req("old_text", textArg("Exact text in the file; the anchor of an insertion.", 1)),
				schema.Opt("new_text", textArg("Replacement or inserted text.", 0)),
				schema.Opt("occurrence", schema.Int("Which match, from 1.", 1, files.MaxOccurrence)),
			), 1, files.MaxEdits)),
			schema.Opt("content", textArg("Whole content (create).", 0)),
		), 1, files.MaxChanges)),
		schema.Opt("dry_run", schema.Bool("Check and report only.")),
	),
}
