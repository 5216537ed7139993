package mcp

import (
	"webcodex/commands/call"
	"webcodex/commands/session"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

func contextArg() *schema.Schema {
	s := schema.Object(
		schema.Opt("default_cwd", schema.Str("Where commands run, within the Project.", 1, session.MaxCwd)),
		schema.Opt("default_shell", schema.Enum("Shell of run_shell.", "sh", "bash")),
		schema.Opt("resource", schema.Str("Machine of the Runner that run_shell uses.", 1, session.MaxResource)),
	)
	s.Description = "Defaults for commands of this Session."
	return s.Fault(fault.InvalidContext) // a member beyond these is no default (EXE-02)
}

var sessionModeArg = schema.Enum("read_only denies edits and commands; absent: as it is, a new Session normal.", "normal", "read_only")

var workOnProject = Tool{
	Spec:  &session.WorkOnProject,
	Title: "Start or continue work on a project",
	Description: "START HERE: begin work on a repository, or continue it exactly. With project: a fresh Workflow Session. " +
		"With session_id: that Session goes on with the new instruction. Returns session_id; pass it on every later call, " +
		"and keep it for another window: read_session_handoff shows where the work stands.",
	Category: "workflow", Direct: true,
	Input: schema.Object(
		schema.Req("instruction", schema.Str("What is to be done, in the person's words.", 1, session.MaxInstruction).Fault(fault.InvalidInstruction).ForReading()),
		schema.Opt("project", schema.Str("To start on, as list_projects gives it.", 1, 512)),
		schema.Opt("session_id", schema.Str("Exactly the one to continue.", 1, 128)),
		schema.Opt("client_id", schema.Str("With path, instead of project: its Runner.", 1, 64)),
		schema.Opt("path", schema.Str("A directory there.", 1, session.MaxPath)),
		schema.Opt("mode", schema.Enum("worktree: a Project of its own.", "checkout", "worktree")),
		schema.Opt("base_ref", schema.Str("Default HEAD.", 1, session.MaxBaseRef)),
		schema.Opt("session_mode", sessionModeArg),
		schema.Opt("execution_context", contextArg()),
		schema.Opt("guidance_profile", schema.Enum("", call.Profiles...)),
		schema.Opt("detail", schema.Enum("3 or 12 paths of the attempt before.", session.DetailMinimal, session.DetailStandard)),
	),
}
