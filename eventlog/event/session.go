package event

// SessionEvent is an event of a Workflow Session.
//
//sumtype:decl
type SessionEvent interface {
	Event
	isSession()
}

// Mode of a Session.
type Mode string

// Session modes (SES, STA).
const (
	ModeNormal   Mode = "normal"
	ModeReadOnly Mode = "read_only"
)

// Guards narrow what a Session may do; read_only sets both.
type Guards struct {
	DenyWrite bool `json:"deny_write_tools"`
	DenyShell bool `json:"deny_shell_tools"`
}

// ExecutionContext holds a Session's execution defaults, a closed set.
type ExecutionContext struct {
	DefaultCwd   string `json:"default_cwd,omitempty"`
	DefaultShell string `json:"default_shell,omitempty"`
	Resource     string `json:"resource,omitempty"`
}

// SessionCreated begins a Session. Its commit usually also holds the first instruction.
type SessionCreated struct {
	Nonce     string           `json:"nonce"`
	Authority string           `json:"authority"`
	Principal string           `json:"principal"`
	Project   ProjectRef       `json:"project,omitzero"`
	Root      string           `json:"root,omitempty"` // root fingerprint at creation
	Title     string           `json:"title"`          // redacted, ≤ 240 characters
	Mode      Mode             `json:"mode"`
	Guards    Guards           `json:"guards"`
	Context   ExecutionContext `json:"context"`
}

// InstructionAccepted is an instruction given with work_on_project (EVT-22).
type InstructionAccepted struct {
	Text              string  `json:"text"` // redacted, ≤ 4,000 characters
	Continuation      string  `json:"continuation"`
	RequestedMode     Mode    `json:"requested_mode,omitempty"`
	PreviousMode      Mode    `json:"previous_mode,omitempty"`
	Mode              Mode    `json:"mode"`
	Guards            Guards  `json:"guards"`
	PreviousGuards    *Guards `json:"previous_guards,omitempty"`
	CapabilityChanged bool    `json:"capability_changed"`
	Transport         string  `json:"transport,omitempty"`
}

// ContextUpdated replaces the execution defaults.
type ContextUpdated struct {
	Context  ExecutionContext `json:"context"`
	Previous ExecutionContext `json:"previous"`
}

// InstructionFile is the fingerprint of an instruction file (AGENTS.md, CLAUDE.md).
type InstructionFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of the whole file
	Bytes  int64  `json:"bytes"`
}

// InstructionsObserved replaces what the Session knows of the Project's instruction files:
// those that were there at a start or resume, never their text (STA-14, STA-16).
type InstructionsObserved struct {
	Sources []InstructionFile `json:"sources,omitempty"`
}

// SessionClosed ends a Session; nothing reopens it (SES-23).
type SessionClosed struct{}

// Role tells a recorder pair from a business pair (EVT-09).
type Role string

// Roles.
const (
	RoleBusiness Role = "business"
	RoleRecorder Role = "recorder"
)

// Input is the allow-listed evidence of a call's arguments: counts, relative paths, closed
// atoms; never free text (ruling 5). Strings ≤ 120 characters, lists ≤ 8 items (EVT-17).
type Input struct {
	Executable   string   `json:"executable,omitempty"` // basename only
	Language     string   `json:"language,omitempty"`
	Shell        string   `json:"shell,omitempty"`
	ArgCount     int      `json:"arg_count,omitempty"`
	CommandBytes int      `json:"command_bytes,omitempty"`
	StdinBytes   int      `json:"stdin_bytes,omitempty"`
	Cwd          string   `json:"cwd,omitempty"` // project-relative
	TimeoutSecs  int      `json:"timeout_secs,omitempty"`
	Purpose      string   `json:"purpose,omitempty"`
	Paths        []string `json:"paths,omitempty"`
	PathCount    int      `json:"path_count,omitempty"`
	ChangeCount  int      `json:"change_count,omitempty"`
	QueryCount   int      `json:"query_count,omitempty"`
	DryRun       bool     `json:"dry_run,omitempty"`
	Limit        int      `json:"limit,omitempty"`
	Packages     []string `json:"packages,omitempty"`
	Target       string   `json:"target,omitempty"`      // a job id or the like, minted by the server
	Expectation  string   `json:"expectation,omitempty"` // as declared; absent: success (EXE-29)
	Features     []string `json:"features,omitempty"`
	Flags        []string `json:"flags,omitempty"` // names of boolean arguments that were true
	// Partial: what narrowed the run further is not stored (free text, or too long), so the
	// rest of this does not repeat it.
	Partial bool `json:"partial,omitempty"`
	// AcceptedExitCodes are results in themselves, as declared (EXE-32).
	AcceptedExitCodes []int `json:"accepted_exit_codes,omitempty"`
	// MinTests is the least number of tests that was asked for; 0: none (VAL-13, VAL-14).
	MinTests int `json:"min_tests,omitempty"`
	// TextBytes and TagCount are of a message; Target is the one it is about (MSG-44).
	TextBytes int `json:"text_bytes,omitempty"`
	TagCount  int `json:"tag_count,omitempty"`
}

// Execution is what is durable before an offer leaves: identity and fence, no text.
type Execution struct {
	ID       ExecutionID `json:"id"`
	Client   ClientID    `json:"client"`
	Instance InstanceID  `json:"instance"`
	Root     string      `json:"root"` // fence: root fingerprint
	// Generation and Boot of the Runner's journal when the offer left: with both unchanged,
	// absence from the journal proves that nothing started.
	Generation string `json:"generation,omitempty"`
	Boot       string `json:"boot,omitempty"`
	Digest     string `json:"digest"` // HMAC of the offer with the instance key
	Op         string `json:"op"`
}

// ToolCallStarted opens a recorded call.
type ToolCallStarted struct {
	Call      CallID     `json:"call_id"`
	Role      Role       `json:"role"`
	Tool      string     `json:"tool"`
	Transport string     `json:"transport"`
	Input     Input      `json:"input"`
	At        string     `json:"at,omitempty"` // when it differs from the commit: start and finish in one commit
	Execution *Execution `json:"execution,omitempty"`
	// Validates is what a validating run covers; its end carries the same, after a restart too.
	Validates *ValidationScope `json:"validates,omitempty"`
}

// ValidationScope says, opaquely, what a validating run covers (VAL-03, VAL-22).
type ValidationScope struct {
	Kind      string `json:"kind"` // go_test, cargo_test, or the tool that was run
	TargetID  string `json:"target_id"`
	Scope     string `json:"scope_identity"`
	Parser    string `json:"parser"` // none: only the exit status is read
	ParserVer int    `json:"parser_version"`
}

// ExecutionState is the closed atom of what is known about an effect (EVT-21).
type ExecutionState string

// Execution states.
const (
	NotStarted     ExecutionState = "not_started"
	Started        ExecutionState = "started"
	OutcomeUnknown ExecutionState = "outcome_unknown"
	Completed      ExecutionState = "completed"
	Cancelled      ExecutionState = "cancelled"
	TimedOut       ExecutionState = "timed_out"
)

// Effect is what a call did to the world, as far as known.
type Effect struct {
	StateChanged     bool           `json:"state_changed"`
	CommandStarted   bool           `json:"command_started"`
	CommandCompleted bool           `json:"command_completed"`
	State            ExecutionState `json:"execution_state,omitempty"`
}

// Validation is the evidence of a validating run.
type Validation struct {
	Kind         string `json:"kind"` // go_test, cargo_test, …
	TargetID     string `json:"target_id"`
	Scope        string `json:"scope_identity"`
	Parser       string `json:"parser"`
	ParserVer    int    `json:"parser_version"`
	Passed       *bool  `json:"passed,omitempty"`
	TestsRun     int    `json:"tests_run"`
	TestsPassed  int    `json:"tests_passed"`
	TestsFailed  int    `json:"tests_failed"`
	TestsSkipped int    `json:"tests_skipped"`
	ZeroTests    bool   `json:"zero_tests"`
	// Failures name what failed, at most 20 (VAL-24); never what it said.
	Failures []FailedCase `json:"failures,omitempty"`
	// Bound is what the run looked at and printed; nil: nobody observed it.
	Bound *Binding `json:"bound_to,omitempty"`
}

// Kinds of failure identities, a closed set (VAL-24).
const (
	FailureTest       = "test"
	FailureDiagnostic = "diagnostic"
	FailureUnknown    = "unknown"
)

// FailedCase is one failure identity: a test, or a place that does not build.
type FailedCase struct {
	Kind string `json:"kind"`
	Name string `json:"name"`           // ≤ 240 characters, redacted
	File string `json:"file,omitempty"` // project-relative, or as the tool names it below its directory
	Line int    `json:"line,omitempty"`
}

// Binding ties evidence to the files it was taken from. Hashes are lowercase hex.
type Binding struct {
	Commit string `json:"commit,omitempty"` // of HEAD, empty before the first one
	// Tree is the SHA-256 over all tracked and untracked files that no rule ignores, committed
	// or not; empty where it could not be told, then Reason says why.
	Tree string `json:"tree_hash,omitempty"`
	// Output is the SHA-256 over all that was printed.
	Output string `json:"output_hash,omitempty"`
	Reason string `json:"reason_code,omitempty"`
	// Moved: the files changed while it ran, so it proves neither state.
	Moved bool `json:"moved,omitempty"`
}

// Expectation results, a closed set (EVT-19).
const (
	ExpectationNone     = "none"
	ExpectationMatched  = "matched_expected_failure"
	UnexpectedFailure   = "unexpected_failure"
	ExpectationMismatch = "expectation_mismatch"
	UnexpectedSuccess   = "unexpected_success"
)

// Failure kinds of validating runs that are gaps in the evidence, not failures of what was
// validated (VAL-15).
const (
	GapTooFewTests = "insufficient_tests"
	GapNoModule    = "not_a_module"
)

// ContextResult is what a read gave its caller, in counts: no path, no pattern, no text.
type ContextResult struct {
	Items     int  `json:"items"` // files, queries or matches that came back
	Failed    int  `json:"failed,omitempty"`
	Truncated bool `json:"truncated,omitempty"`
}

// Call statuses (EVT-19).
const (
	StatusSucceeded = "succeeded"
	StatusFailed    = "failed"
)

// ToolCallFinished closes a recorded call (EVT-19).
type ToolCallFinished struct {
	Call         CallID      `json:"call_id"`
	Role         Role        `json:"role"`
	Tool         string      `json:"tool"`
	Transport    string      `json:"transport"`
	Status       string      `json:"status"`
	DurationMS   int64       `json:"duration_ms"`
	ExitCode     *int        `json:"exit_code,omitempty"`
	ErrorKind    string      `json:"error_kind,omitempty"`
	FailureKind  string      `json:"failure_kind,omitempty"`
	ErrorSummary string      `json:"error_summary,omitempty"` // server-made sentence, ≤ 240 characters (EVT-20)
	Changed      []string    `json:"changed_paths,omitempty"` // ≤ 32 (EVT-26)
	Observed     []string    `json:"observed_paths,omitempty"`
	Execution    ExecutionID `json:"execution_id,omitempty"`
	Promoted     bool        `json:"promoted,omitempty"` // the execution lives on as a Job
	Effect       Effect      `json:"effect"`
	Expectation  string      `json:"expectation_result"`
	Validation   *Validation `json:"validation,omitempty"`
	Recovered    bool        `json:"recovered,omitempty"` // written at start for a call a dead server left open
	// Replays is the execution that the caller's idempotency key stood for already: this call
	// started nothing, and what is known of that execution is with the call that made it.
	Replays ExecutionID `json:"replays,omitempty"`
	// Context sums up what a read gave (EVT-15).
	Context *ContextResult `json:"context_result_summary,omitempty"`
	// Shell is there where the call was about a persistent shell (SHL-29).
	Shell *ShellFacts `json:"persistent_shell,omitempty"`
}

// ExecutionFinished is the terminal marker of a promoted execution (a Job).
type ExecutionFinished struct {
	Execution   ExecutionID `json:"execution_id"`
	Call        CallID      `json:"call_id"`
	Tool        string      `json:"tool"`
	DurationMS  int64       `json:"duration_ms"`
	ExitCode    *int        `json:"exit_code,omitempty"`
	FailureKind string      `json:"failure_kind,omitempty"`
	Effect      Effect      `json:"effect"`
	Expectation string      `json:"expectation_result"`
	Validation  *Validation `json:"validation,omitempty"`
	// FinishedAt is the Runner's time of the end, in TimeForm; empty where nobody could tell. The
	// commit's own time is when it was learned (VAL-10).
	FinishedAt string `json:"finished_at,omitempty"`
}

// ExecutionReconciled is later proof about an execution whose outcome was unknown.
type ExecutionReconciled struct {
	Execution ExecutionID `json:"execution_id"`
	ExitCode  *int        `json:"exit_code,omitempty"`
	Effect    Effect      `json:"effect"`
}

func (SessionCreated) isEvent()       {}
func (InstructionAccepted) isEvent()  {}
func (ContextUpdated) isEvent()       {}
func (InstructionsObserved) isEvent() {}
func (SessionClosed) isEvent()        {}
func (ToolCallStarted) isEvent()      {}
func (ToolCallFinished) isEvent()     {}
func (ExecutionFinished) isEvent()    {}
func (ExecutionReconciled) isEvent()  {}

func (SessionCreated) isSession()       {}
func (InstructionAccepted) isSession()  {}
func (ContextUpdated) isSession()       {}
func (InstructionsObserved) isSession() {}
func (SessionClosed) isSession()        {}
func (ToolCallStarted) isSession()      {}
func (ToolCallFinished) isSession()     {}
func (ExecutionFinished) isSession()    {}
func (ExecutionReconciled) isSession()  {}
