package session

// Bounds of what is kept and of what one answer may hold.
const (
	// MaxTail is how many of the newest events a Session retains (EVT-01, SES-48).
	MaxTail = 2000
	// MaxMessages is how many of the newest messages a board retains (MSG-04, SES-48).
	MaxMessages = 200
	// Bounds of one message (MSG-02).
	MaxMessageChars = 8000
	MaxTags         = 16
	MaxTagChars     = 64
	// MaxDiscussionItems of one group of a discussion, and the characters of a text in it (MSG-43).
	MaxDiscussionItems = 5
	MaxDiscussionChars = 240
	// HotTarget is how many Sessions are expanded in memory where no other target is given: a
	// count, not bytes (SES-26, SES-32).
	HotTarget = 100
	// SummaryLimit and MaxSummaryLimit are the events of one summary (EVT-02).
	SummaryLimit    = 50
	MaxSummaryLimit = 200
	// MaxAnswerBytes bounds the largest views on their real JSON, whatever limit was asked for:
	// with what an edge adds a host shows 40,000 characters of an answer.
	MaxAnswerBytes = 39_000
	// MaxSummaryPaths is how many paths of one kind a summary shows for one event.
	MaxSummaryPaths = 8

	// ListLimit and MaxListLimit are the rows of one list_sessions page (LST-05).
	ListLimit    = 10
	MaxListLimit = 20
	// MaxListBytes bounds one page on its real JSON (LST-06).
	MaxListBytes = 32 << 10
	// MaxTitleChars of a title as shown (LST-06, SES-57).
	MaxTitleChars = 240

	// MaxBriefBytes bounds a handoff brief on its real JSON (HND-32).
	MaxBriefBytes = 8192
	// MaxContextBytes bounds the brief's task context within it (HND-42).
	MaxContextBytes = 4096
	// MaxExcerptChars of an instruction in a brief (HND-13).
	MaxExcerptChars = 600
	// Lists of a brief (HND-16).
	MaxBriefChanged  = 12
	MaxBriefRecent   = 8
	MaxBriefFailures = 5
	MaxBriefActions  = 5
	// MaxBriefAgain of the actions run a failed validation again: others need room beside them.
	MaxBriefAgain = 3
	// MaxBriefNotes of each kind and MaxBriefReports of adapters outside in a brief (HND-18, HND-22).
	MaxBriefNotes   = 5
	MaxBriefReports = 5
	// MaxBriefCheckpoints of the Project, and the characters of the title of each (HND-47).
	MaxBriefCheckpoints     = 10
	MaxCheckpointTitleChars = 80
	// MaxBriefRelevant files in the task context (HND-42).
	MaxBriefRelevant = 8
	// MaxBriefSteps in it, and the characters of a message in one (HND-42).
	MaxBriefSteps = 5
	MaxStepChars  = 160
	// MaxBranchChars of a branch name in a brief.
	MaxBranchChars = 256
	// MaxAtomChars of an identity made by the server, as shown.
	MaxAtomChars = 120
	// MaxToolChars of a tool's name, as the catalogue bounds it.
	MaxToolChars = 32
	// HandoffLimit and MaxHandoffLimit are the ledger events of a diagnostic handoff (HND-05).
	HandoffLimit    = 20
	MaxHandoffLimit = 100

	// MaxOpenItems of each kind in the diagnostic list of open work.
	MaxOpenItems = 10

	// MaxFeedbackPaths changed or explored paths of a full continuation feedback; a start shows
	// FeedbackPathsStart, one with the detail minimal FeedbackPathsMinimal (CON-16).
	MaxFeedbackPaths     = 100
	FeedbackPathsStart   = 12
	FeedbackPathsMinimal = 3
	// MaxFeedbackFailures and MaxFeedbackActions of a feedback (VAL-24, CON-07).
	MaxFeedbackFailures = 20
	MaxFeedbackActions  = 8
	// MaxFeedbackBytes bounds a feedback on its real JSON.
	MaxFeedbackBytes = 10_000
	// MaxAttemptChars of the instruction in a feedback (CON-06).
	MaxAttemptChars = 500

	// Evidence of a validating run (VAL-13, VAL-24, EXE-32).
	MaxFailureCases      = 20
	MaxFailureName       = 240
	MaxAcceptedExitCodes = 16
	MaxExitCode          = 255
	MaxMinTests          = 100_000
	// ValidationLimit and MaxValidationLimit are the runs of one validation summary (VAL-26).
	ValidationLimit    = 20
	MaxValidationLimit = 100

	// What a stored event may hold at most: the characters of an instruction (STA-11, EVT-22),
	// the paths of a finish (EVT-25, EVT-26), the items of a list of evidence (EVT-17), the
	// instruction files and the bytes of their paths (STA-14).
	MaxInstructionChars = 4000
	MaxChangedPaths     = 32
	MaxObservedPaths    = 201
	MaxInputItems       = 8
	MaxInstructionFiles = 4
	MaxInstructionPath  = 120
	MaxResourceChars    = 80
	MaxRemoteCwdBytes   = 4096 // EXE-07
	// MaxOpaqueBytes of a stored identity or digest; a longer one is none of ours (RES-13).
	MaxOpaqueBytes = 256

	// MaxEnded Jobs whose end a Session remembers by id: the terminal markers (VAL-05). One never
	// leaves for a Job that is still open: those are kept apart, all of them (VAL-06).
	MaxEnded = 64
	// MaxUnknown outcomes that a Session remembers by name; older ones stay counted.
	MaxUnknown = 32
	// MaxObserveItems is how many Jobs one observe_jobs call takes.
	MaxObserveItems = 8
	// MaxStoryChars of free text in one line of the replay.
	MaxStoryChars = 160
)
