// Package call is the fixed pipeline of a tool call: authority first, then the start in the
// log, the effect, the finish in the log, the answer. It holds no tool logic and no switch
// over tools; a tool is a Spec.
package call

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// Plane says what a tool's session_id means (ruling 1).
type Plane int

// Planes.
const (
	// PlaneProject tools work on a Project: project is required, session_id optional, and a
	// named Session gets one business pair.
	PlaneProject Plane = iota
	// PlaneSession tools have a Session as their target; no pair is recorded.
	PlaneSession
	// PlaneRuntime tools name neither.
	PlaneRuntime
)

// Class is what a tool does; guards and the Closed rule go by it.
type Class int

// Classes.
const (
	Observe Class = iota // reads; a Closed Session answers and records nothing (ruling 3)
	Mutate               // changes a Session or another record of ours
	Write                // changes Project files; denied by deny_write_tools
	Execute              // runs a command; denied by deny_shell_tools
)

// Spec is one tool as the pipeline sees it. Specs are package-level values without state;
// everything that lives is reached through the Call.
type Spec struct {
	Name   string
	Scopes []Scope // all are needed (AUTH-12)
	// Conditional are scopes that some of the tool's calls need too; Run asks HasScope.
	Conditional []Scope
	Plane       Plane
	Class       Class
	// ClosedOK lets a tool that is not Observe be called on a Closed Session (close_session).
	ClosedOK bool
	// In is a zero value of the typed arguments (a struct with JSON tags). A test in mcp holds
	// the schema's properties equal to its fields.
	In any
	// Evidence picks the allow-listed facts of the arguments that may be stored. It must not
	// copy free text (ruling 5). Nil: nothing but the tool's name is stored.
	Evidence func(args json.RawMessage) event.Input
	// Expects: the tool takes result_expectation, and its end is held against it (EXE-29).
	Expects bool
	// Status: the tool tells how a Project stands, which is no sign that work goes on (WIN-28).
	Status bool
	// Run does the work. A *fault.Error becomes the refusal; any other error is internal.
	Run func(ctx context.Context, c *Call) (Result, error)
}

// Request is what an edge hands to the Kernel. Args were validated against the tool's
// schema and normalised (no nulls, no stringified arrays).
type Request struct {
	Spec      *Spec
	Args      json.RawMessage
	Principal Principal
	Transport string // mcp or api
	// Window is the caller's, where the host says so; empty: none. It routes and explains, and
	// is never a selector or an authority (WIN-05).
	Window event.WindowID
	// Envelope came beside the arguments.
	Envelope Envelope
	// CancelOnDisconnect: the context's end cancels an effect that is not yet a Job (ruling 10).
	CancelOnDisconnect bool
	// Holds tells whether the credential that the caller came in with is still good; nil: it is. A
	// call that has waited asks before it answers (MSG-12).
	Holds func() bool
	// Gone tells that nobody waits for the answer any more, as far as the edge knows; nil: it never
	// does.
	Gone func() bool
}

// Result is what a tool's Run gives back.
type Result struct {
	// Output is marshalled to a JSON object.
	Output any
	// Failed tells that the call worked and its result is a failure: a command with a bad exit
	// status, a test that failed (ruling 9). Error is then one sentence.
	Failed bool
	Error  string
	// Facts are recorded in the finish event.
	Facts Facts
}

// Facts is what a finish event says besides identity and time.
type Facts struct {
	ExitCode     *int
	FailureKind  string
	ErrorKind    string
	ErrorSummary string // server-made, no output, no argument text (EVT-20)
	Changed      []string
	Observed     []string
	Effect       event.Effect
	Expectation  string // expectation result; empty: none
	Validation   *event.Validation
	Promoted     bool
	Execution    event.ExecutionID
	// Context sums up what a read gave (EVT-15).
	Context *event.ContextResult
	// Shell is there where the call was about a persistent shell (SHL-29).
	Shell *event.ShellFacts
	// FinishedAt is the Runner's time of the end, empty where it did not tell.
	FinishedAt string

	process *wire.ProcessOutcome
}

// Response is what an edge turns into its own form.
type Response struct {
	Success bool
	// Output is a JSON object, additions of shapes.md 3 included.
	Output json.RawMessage
	Error  string
}

// Call is one call in flight, as Run sees it.
type Call struct {
	kernel *Kernel
	req    Request

	Args       json.RawMessage
	Principal  Principal
	Transport  string
	Invocation event.InvocationID
	ID         event.CallID
	Started    time.Time
	// Session is set where session_id was given and authorised.
	Session *session.Core
	// Recorder is the Session that the caller named as the recorder of this call, authorised on
	// its own; nil: none. It says who wrote something, and never what is worked on (REC-08).
	Recorder *session.Core
	// Target is set where a Project was named or follows from the Session, and its Runner lives.
	Target *Target
	// Project is set where a Project was named or follows from the Session, Runner or not.
	Project *ProjectInfo

	worked     *session.Core // that it began or went on with
	execution  event.ExecutionID
	replayed   event.ExecutionID // that it repeats: nothing was started
	validates  *event.ValidationScope
	recorderID event.CallID
	legs       []*leg
	nested     bool // travels with another call, which leaves the evidence
	mutated    bool // a decision of its own is committed
	control    map[string]told
	named      bool   // the arguments name the Project
	guidance   string // the profile asked for
	looked     *wire.InstructionSources
	hasLooked  bool
	settled    chan struct{} // closed when the finish is committed and the answer is built
}

// Target is a Project whose Runner is connected.
type Target struct {
	Ref      event.ProjectRef
	Name     string
	Instance event.InstanceID
	Root     string
	// Generation and Boot of the Runner's journal, from its hello.
	Generation, Boot string
}

// ProjectInfo is a Project as known to the server.
type ProjectInfo struct {
	Ref     event.ProjectRef `json:"-"`
	Project string           `json:"project"` // agent:<client>:<project>
	Name    string           `json:"name"`
	Root    string           `json:"-"` // empty: it was unregistered
	// Git tells whether the Project is a repository; nil while no Runner has said so in this
	// server's life.
	Git       *bool `json:"git,omitempty"`
	Connected bool  `json:"connected"`
}

// RunnerInfo is a Runner as known to the server.
type RunnerInfo struct {
	Client       event.ClientID   `json:"client_id"`
	Instance     event.InstanceID `json:"instance_id"`
	Build        string           `json:"build"`
	OS           string           `json:"os"`
	Arch         string           `json:"arch"`
	Capabilities []string         `json:"capabilities"`
	ConnectedAt  time.Time        `json:"-"`
	Projects     int              `json:"projects"`

	Status   string    `json:"-"` // RunnerConnected, RunnerDisconnected or RunnerRefused
	Protocol int       `json:"-"` // 0: it was not heard in this server's life
	Trouble  string    `json:"-"` // what its owner should look at; empty: nothing
	SeenAt   time.Time `json:"-"` // its last word in this server's life
	// Slots is how busy it was with Jobs then; nil: it did not say.
	Slots *wire.JobSlots `json:"-"`
}

// Status of a Runner. A refused one speaks another protocol.
const (
	RunnerConnected    = "connected"
	RunnerDisconnected = "disconnected"
	RunnerRefused      = "refused"
)

// ReasonProtocol is the reason of a refusal for a Runner in another protocol.
const ReasonProtocol = "protocol_mismatch"

// Fleet is the server's end of the Runner link (implemented by commands/execution). It is an
// interface because the pipeline's tests inject Runner faults here.
type Fleet interface {
	// Target finds a Project: unknown_project, or runner_unavailable where its Runner is gone.
	Target(ref event.ProjectRef) (Target, error)
	// Projects lists known Projects, connected or not, ordered by id.
	Projects() []ProjectInfo
	// Runners lists connected Runners, ordered by client id; KnownRunners those too that are not
	// connected now and have served a Project once, or were refused.
	Runners() []RunnerInfo
	KnownRunners() []RunnerInfo
	// Runner is the Target of an op about a Runner itself: it names no Project. Errors:
	// unknown_client_id, runner_unavailable.
	Runner(client event.ClientID) (Target, error)
	// Await waits until a Runner says that it serves the Project, or that it does not. Error:
	// runner_unavailable when ctx ends before.
	Await(ctx context.Context, ref event.ProjectRef, served bool) error
	// Forget tells that the Project was unregistered, after that is in the log.
	Forget(ref event.ProjectRef)
	// Ask makes a pure read. Errors: the Runner's fault; runner_unavailable; timeout.
	Ask(ctx context.Context, t Target, op wire.Op, body json.RawMessage, timeout time.Duration) (json.RawMessage, error)
	// Run makes one effect through offer, claim and grant (faults.md 3).
	Run(ctx context.Context, x Execution) (Outcome, error)
	// Adopt takes over an execution that an earlier server life left at a Runner: x.Late is told its
	// end when the Runner proves one, or that nobody knows it when its limit is long over. It is
	// never granted: one that has not started never will.
	Adopt(x Execution)
	// Query asks the journal of the Runner about an id that an earlier life left open.
	Query(ctx context.Context, client event.ClientID, id event.ExecutionID) (wire.QueryReply, error)
	// Cancel asks to end an execution; true when the Runner took the request.
	Cancel(ctx context.Context, client event.ClientID, id event.ExecutionID, reason string) (bool, error)
	// Digest keys the digest of an offer.
	Digest(o wire.Offer) string
}

// Execution is one effect to be made at most once.
type Execution struct {
	Target Target
	Offer  wire.Offer // id, digest, fence, op, body and bounds filled
	// Ready blocks until the start commit is durable; an error denies the grant. It may be
	// called from another goroutine and more than once.
	Ready func(ctx context.Context) error
	// Grace: after it the execution becomes a Job with the same id; 0 means never.
	Grace time.Duration
	// Late is called with the real end of an execution that was promoted or whose caller had
	// gone; the Runner's result is acknowledged when it returns nil. Called at most once
	// successfully.
	Late func(ctx context.Context, r wire.Result) error
	// Alive, if set, is told that the Runner of an adopted execution has it in hand.
	Alive func()
	// Settled is closed when the call's finish is durable: only then is the Runner's result of a
	// call that was waited for acknowledged. Nil: at once.
	Settled <-chan struct{}
	// CancelOnDone: the end of ctx cancels the execution if it is not yet a Job. Where false,
	// Run goes on to the end although ctx is done.
	CancelOnDone bool
}

// Outcome is how an effect ended for its caller.
type Outcome struct {
	// Result is the proven end; nil where Promoted or Unknown.
	Result   *wire.Result
	Promoted bool // still running, now a Job
	Unknown  bool // started or not, nobody can tell: outcome_unknown
	// First is the execution that the offer's key stands for: nothing was started, and how that
	// one ended is not in this Outcome. Effect resolves it.
	First event.ExecutionID
}
