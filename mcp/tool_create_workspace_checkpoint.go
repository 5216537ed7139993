package mcp

import (
	"webcodex/commands/checkpoint"
	"webcodex/mcp/schema"
)

var checkpointIDArg = schema.Str("As list_workspace_checkpoints gives it.", checkpoint.IDBytes, checkpoint.IDBytes)

var createWorkspaceCheckpoint = Tool{
	Spec:  &checkpoint.Create,
	Title: "Keep the files as they are",
	Description: "Keep the working tree as it is now as a checkpoint in the repository: changed, new and deleted files byte for byte, " +
		"not what .gitignore names. No commit on a branch; index and files stay as they are. 8 MiB a file, 32 MiB in all; what is skipped is named.",
	Category: "git",
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("title", schema.Str("What it is, in one line.", 1, checkpoint.MaxTitle)),
		schema.Opt("note", schema.Str("More about it.", 1, checkpoint.MaxNote)),
		schema.Opt("kind", schema.Enum("Default snapshot.", checkpoint.Kinds...)),
		schema.Opt("labels", schema.List("To find it by.", schema.Str("A-Z a-z 0-9 . _ -", 1, checkpoint.MaxLabel), 0, checkpoint.MaxLabels)),
		schema.Opt("include_untracked", schema.Bool("Default true; without, a restore deletes no file that was added since.")),
	),
}
