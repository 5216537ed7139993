package mcp

// tools is the catalogue, in the order shown. One line a tool.
var tools = []Tool{
	workOnProject,
	listProjects,
	startSession,
	closeSession,
	listSessions,
	readSessionSummary,
	readSessionHandoff,
	finishCodingTask,
	getGitStatus,
	readGitDiff,
	readGitDiffHunks,
	readGitLog,
	readWorkspaceChanges,
	restoreGitPaths,
	runProcess,
	runScript,
	runShell,
	goTest,
	cargoTest,
	observeJobs,
	stopJob,
	getRuntimeStatus,
	readToolManifest,
	callRuntimeTool,
}
