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
	runProcess,
	runScript,
	runShell,
	observeJobs,
	stopJob,
	getRuntimeStatus,
	readToolManifest,
	callRuntimeTool,
}
