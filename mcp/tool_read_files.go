package mcp

import (
	"webcodex/commands/files"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

// pathArg is a project-relative path; a bad one is invalid_path whatever is wrong with it.
func pathArg(desc string, least int) *schema.Schema {
	return schema.Str(desc, least, files.MaxPathBytes).Bytes(files.MaxPathBytes).Fault(fault.InvalidPath)
}

var readFiles = Tool{
	Spec:  &files.Read,
	Title: "Read files",
	Description: "Read text files by line range, several at once: with the sha256 for later edits, total_lines, next_start_line where " +
		"there is more. Line ends show as LF (eol tells the real ones).",
	Category: "files", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("items", schema.List("Files to read.", schema.Object(
			schema.Req("path", pathArg("Project-relative path.", 1)),
			schema.Opt("start_line", schema.Knob("First line, from 1.")),
			schema.Opt("limit", schema.Knob("Lines, up to 2,000 (default).")),
		), 1, files.MaxReadItems)),
		schema.Opt("with_line_numbers", schema.Bool("Put number and tab before each line.")),
	),
}
