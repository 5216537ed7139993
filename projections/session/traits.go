package session

import "strings"

// traits of a tool for the counts of a summary (EVT-24). They describe, they permit nothing:
// scopes and guards go by the tool's class in the pipeline.
type traits struct{ read, write, shell, git, changes bool }

var writeLike = set("edit_project_files", "write_project_file", "delete_project_files", "apply_patch",
	"apply_patch_checked", "restore_git_paths", "discard_untracked", "create_project",
	"restore_workspace_checkpoint")

var shellLike = set("run_process", "run_script", "run_shell", "run_job", "run_detached_process", "stop_job",
	"open_session_shell", "execute_session_shell", "close_session_shell", "send_execution_input",
	"cargo_fmt", "cargo_check", "cargo_test", "go_test", "go_vet", "npm_test", "pytest", "run_validation")

var gitLike = set("read_workspace_changes", "discard_untracked", "check_workspace_hygiene")

var changeLike = set("read_workspace_changes", "read_git_diff", "read_git_diff_hunks", "read_git_review_summary")

// explores are the focused reads whose paths tell what a task looked at (CON-11); listings
// and diffs tell nothing (CON-12).
var explores = set("read_files", "search_project_texts", "search_file_context", "document_symbols",
	"goto_definition", "find_references", "hover", "document_diagnostics", "call_hierarchy")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

func traitsOf(tool string) traits {
	t := traits{write: writeLike[tool], shell: shellLike[tool], changes: changeLike[tool],
		git: gitLike[tool] || strings.Contains(tool, "_git_")}
	t.read = !t.write && !t.shell
	return t
}
